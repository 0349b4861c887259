/* The files of the playground's page, which the compiler embeds: an array in Swift of this size takes it many seconds.
 */
#include "cplaygroundpage.h"

#pragma clang diagnostic ignored "-Wc23-extensions"

static const unsigned char index_html[] = {
#embed "../WorkerPlayground/Resources/index.html"
};
static const unsigned char app_css[] = {
#embed "../WorkerPlayground/Resources/app.css"
};
static const unsigned char icon_svg[] = {
#embed "../WorkerPlayground/Resources/icon.svg"
};
static const unsigned char main_js[] = {
#embed "../WorkerPlayground/Resources/main.js"
};
static const unsigned char dom_js[] = {
#embed "../WorkerPlayground/Resources/dom.js"
};
static const unsigned char editing_js[] = {
#embed "../WorkerPlayground/Resources/editing.js"
};
static const unsigned char api_js[] = {
#embed "../WorkerPlayground/Resources/api.js"
};
static const unsigned char model_js[] = {
#embed "../WorkerPlayground/Resources/model.js"
};
static const unsigned char controls_js[] = {
#embed "../WorkerPlayground/Resources/controls.js"
};
static const unsigned char filters_js[] = {
#embed "../WorkerPlayground/Resources/filters.js"
};
static const unsigned char lists_js[] = {
#embed "../WorkerPlayground/Resources/lists.js"
};
static const unsigned char outlines_js[] = {
#embed "../WorkerPlayground/Resources/outlines.js"
};
static const unsigned char stage_js[] = {
#embed "../WorkerPlayground/Resources/stage.js"
};
static const unsigned char state_js[] = {
#embed "../WorkerPlayground/Resources/state.js"
};
static const unsigned char uploads_js[] = {
#embed "../WorkerPlayground/Resources/uploads.js"
};
static const unsigned char overlay_js[] = {
#embed "../WorkerPlayground/Resources/overlay.js"
};
static const unsigned char placing_js[] = {
#embed "../WorkerPlayground/Resources/placing.js"
};
static const unsigned char results_js[] = {
#embed "../WorkerPlayground/Resources/results.js"
};
static const unsigned char runner_js[] = {
#embed "../WorkerPlayground/Resources/runner.js"
};
static const unsigned char timing_js[] = {
#embed "../WorkerPlayground/Resources/timing.js"
};
static const unsigned char handover_js[] = {
#embed "../WorkerPlayground/Resources/handover.js"
};
static const unsigned char chart_js[] = {
#embed "../WorkerPlayground/Resources/chart.js"
};

#define CPLAYGROUNDPAGE_FILE(path, type, bytes)                                                                        \
  { path, type "; charset=utf-8", bytes, sizeof(bytes) }

static const cplaygroundpage_file files[] = {
    CPLAYGROUNDPAGE_FILE("/", "text/html", index_html),
    CPLAYGROUNDPAGE_FILE("/app.css", "text/css", app_css),
    CPLAYGROUNDPAGE_FILE("/icon.svg", "image/svg+xml", icon_svg),
    CPLAYGROUNDPAGE_FILE("/main.js", "text/javascript", main_js),
    CPLAYGROUNDPAGE_FILE("/dom.js", "text/javascript", dom_js),
    CPLAYGROUNDPAGE_FILE("/editing.js", "text/javascript", editing_js),
    CPLAYGROUNDPAGE_FILE("/api.js", "text/javascript", api_js),
    CPLAYGROUNDPAGE_FILE("/model.js", "text/javascript", model_js),
    CPLAYGROUNDPAGE_FILE("/controls.js", "text/javascript", controls_js),
    CPLAYGROUNDPAGE_FILE("/filters.js", "text/javascript", filters_js),
    CPLAYGROUNDPAGE_FILE("/lists.js", "text/javascript", lists_js),
    CPLAYGROUNDPAGE_FILE("/outlines.js", "text/javascript", outlines_js),
    CPLAYGROUNDPAGE_FILE("/stage.js", "text/javascript", stage_js),
    CPLAYGROUNDPAGE_FILE("/state.js", "text/javascript", state_js),
    CPLAYGROUNDPAGE_FILE("/uploads.js", "text/javascript", uploads_js),
    CPLAYGROUNDPAGE_FILE("/overlay.js", "text/javascript", overlay_js),
    CPLAYGROUNDPAGE_FILE("/placing.js", "text/javascript", placing_js),
    CPLAYGROUNDPAGE_FILE("/results.js", "text/javascript", results_js),
    CPLAYGROUNDPAGE_FILE("/runner.js", "text/javascript", runner_js),
    CPLAYGROUNDPAGE_FILE("/timing.js", "text/javascript", timing_js),
    CPLAYGROUNDPAGE_FILE("/handover.js", "text/javascript", handover_js),
    CPLAYGROUNDPAGE_FILE("/chart.js", "text/javascript", chart_js),
};

const cplaygroundpage_file *cplaygroundpage_file_at(size_t index) {
  return index < sizeof(files) / sizeof(files[0]) ? &files[index] : NULL;
}
