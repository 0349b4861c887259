{{- define "image-worker.name" -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "image-worker.selector" -}}
app.kubernetes.io/name: image-worker
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "image-worker.labels" -}}
{{ include "image-worker.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}
