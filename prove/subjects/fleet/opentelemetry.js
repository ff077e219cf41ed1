// Loaded before a server of Node: OpenTelemetry's own instrumentation of http, whose spans go to the file SPANS, as OTLP
// in JSON, a request of an exporter on each line.
"use strict";

const fs = require("fs");
const { registerInstrumentations } = require("@opentelemetry/instrumentation");
const { HttpInstrumentation } = require("@opentelemetry/instrumentation-http");
const { JsonTraceSerializer } = require("@opentelemetry/otlp-transformer");
const { BatchSpanProcessor, NodeTracerProvider } = require("@opentelemetry/sdk-trace-node");

const exporter = {
  export(spans, done) {
    fs.appendFileSync(process.env.SPANS, Buffer.from(JsonTraceSerializer.serializeRequest(spans)) + "\n");
    done({ code: 0 });
  },
  shutdown() {
    return Promise.resolve();
  },
};
const provider = new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(exporter)] });
provider.register();
registerInstrumentations({ instrumentations: [new HttpInstrumentation()] });
process.on("SIGTERM", () => provider.shutdown().then(() => process.exit(0)));
