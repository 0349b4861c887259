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

{{- /* A number as it was written; large ones arrive as 6.4e+08. */ -}}
{{- define "image-worker.text" -}}
{{ kindIs "float64" . | ternary (printf "%.0f" (float64 .)) (toString .) }}
{{- end }}

{{- /* A quantity of memory, such as 1Gi, 1.5G or 536870912, in MiB. */ -}}
{{- define "image-worker.mebibytes" -}}
{{- $quantity := include "image-worker.text" . -}}
{{- if not (regexMatch "^[0-9]+([.][0-9]+)?(Ki|Mi|Gi|Ti|k|M|G|T)?$" $quantity) -}}
{{- fail (printf "resources.limits.memory is %q; it must be a number with Ki, Mi, Gi, Ti, k, M, G or T" $quantity) -}}
{{- end -}}
{{- $units := dict "" 1 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 "k" 1000 "M" 1000000 "G" 1000000000 "T" 1000000000000 -}}
{{- $number := regexFind "^[0-9.]+" $quantity -}}
{{- divf (mulf (float64 $number) (float64 (get $units (trimPrefix $number $quantity)))) 1048576.0 | floor | int64 -}}
{{- end }}

{{- /* Fails where the memory that the worker may use for images does not fit into the pod. */ -}}
{{- define "image-worker.checkMemory" -}}
{{- $limit := dig "limits" "memory" "" (.Values.resources | default dict) -}}
{{- $setting := get (.Values.settings | default dict) "MEMORY_LIMIT_MIB" -}}
{{- if and $limit $setting -}}
{{- $available := sub (include "image-worker.mebibytes" $limit | int64) 96 -}}
{{- if gt (int64 $setting) $available -}}
{{- fail (printf "settings.MEMORY_LIMIT_MIB is %v, but resources.limits.memory is %v: with 96 MiB for the process, at most %d fit; lower the setting or raise the limit" $setting (include "image-worker.text" $limit) $available) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- /* Fails for settings that the chart has already, or that ports and probes would not follow. */ -}}
{{- define "image-worker.checkSettings" -}}
{{- $own := list "HOST" "METRICS_HOST" "METRICS_PORT" "INSECURE" -}}
{{- if .Values.tls.secretName }}{{ $own = concat $own (list "TLS_CERTIFICATE" "TLS_KEY") }}{{ end -}}
{{- if .Values.tls.clientAuthoritySecretName }}{{ $own = append $own "TLS_CLIENT_CA" }}{{ end -}}
{{- if .Values.identities.secretName }}{{ $own = append $own "IDENTITIES" }}{{ end -}}
{{- if .Values.presets }}{{ $own = append $own "PRESETS" }}{{ end -}}
{{- $settings := .Values.settings | default dict -}}
{{- range $own -}}
{{- if hasKey $settings . -}}
{{- fail (printf "settings.%s: the chart sets IMAGE_WORKER_%s itself; remove it" . .) -}}
{{- end -}}
{{- end -}}
{{- range list "PORT" "UNIX_SOCKET" -}}
{{- if hasKey $settings . -}}
{{- fail (printf "settings.%s: the pod listens on port 50051, as its probes and Services expect; remove it" .) -}}
{{- end -}}
{{- end -}}
{{- if hasKey $settings "METRICS_TLS" -}}
{{- fail "settings.METRICS_TLS: probes and Prometheus ask the metrics endpoint without TLS; remove it" -}}
{{- end -}}
{{- end }}

{{- /* A probe by gRPC or, with TLS, which the probes of Kubernetes do not know, by HTTP. */ -}}
{{- define "image-worker.probe" -}}
{{- if .Values.tls.secretName -}}
httpGet:
  path: /health
  port: metrics
{{- else -}}
grpc:
  port: 50051
{{- end -}}
{{- end }}
