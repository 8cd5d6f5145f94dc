// Exports spans to an OpenTelemetry collector as OTLP over HTTP in JSON. No other file imports OpenTelemetry, and this
// one is loaded only if an endpoint is configured. A slow or unreachable collector loses spans but never delays
// requests: spans are sent in batches and dropped when the queue is full.

import {
  createTraceState,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
  serviceInstanceIdDetector,
} from '@opentelemetry/resources';
import {
  BasicTracerProvider,
  BatchSpanProcessor,
  type ReadableSpan,
  type SpanExporter,
} from '@opentelemetry/sdk-trace-base';
import { endsWithin } from '../common/ends-within.js';
import { LogLimiter } from '../common/log-limiter.js';
import type { Logger } from '../common/logger.js';
import type { Phase, RequestSpan, TraceContext, Tracer } from '../common/trace.js';

/** Timeout for exporting a batch, and for the last batches at shutdown. */
const EXPORT_MS_MAX = 3_000;
/** Failures are logged at most this often. */
const WARNING_INTERVAL_MS = 60_000;
/** Bounds what is logged of a failure, as the reply of a collector may be a whole HTML page. */
const CAUSE_CHARACTERS_MAX = 300;

interface TracingOptions {
  /** The endpoint of the collector, including the path. */
  readonly url: string;
  readonly version: string;
  readonly logger: Logger;
}

export function createTracer({ url, version, logger }: TracingOptions): Tracer {
  const exporter = new LoggingExporter(
    new OTLPTraceExporter({ url, timeoutMillis: EXPORT_MS_MAX }),
    logger,
  );
  const provider = new BasicTracerProvider({
    // OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES take precedence.
    resource: defaultResource()
      .merge(resourceFromAttributes({ 'service.name': 'sagitta', 'service.version': version }))
      .merge(detectResources({ detectors: [serviceInstanceIdDetector, envDetector] })),
    spanProcessors: [new BatchSpanProcessor(exporter)],
  });
  const tracer = provider.getTracer('sagitta', version);
  return {
    startRequest({ method, route, scheme, startMs, parent }) {
      const context =
        parent === null ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, toSpanContext(parent));
      const attributes = {
        'http.request.method': method,
        'http.route': route,
        'url.scheme': scheme,
      };
      const toTime = createTimeScale();
      const span = tracer.startSpan(
        `${method} ${route}`,
        { kind: SpanKind.SERVER, startTime: toTime(startMs), attributes },
        context,
      );
      const addPhase = (phase: Phase) => {
        const child = tracer.startSpan(
          phase.name,
          { startTime: toTime(phase.startMs), attributes: { ...phase.attributes } },
          trace.setSpan(ROOT_CONTEXT, span),
        );
        child.end(toTime(phase.endMs));
      };
      return new ServerSpan(span, toTime, addPhase);
    },
    async close() {
      await endsWithin(provider.shutdown(), EXPORT_MS_MAX);
    },
  };
}

class ServerSpan implements RequestSpan {
  readonly traceId: string;
  readonly #span: Span;
  readonly #toTime: TimeScale;
  readonly #addPhase: (phase: Phase) => void;

  constructor(span: Span, toTime: TimeScale, addPhase: (phase: Phase) => void) {
    this.#span = span;
    this.#toTime = toTime;
    this.#addPhase = addPhase;
    this.traceId = span.spanContext().traceId;
  }

  addPhases(phases: readonly Phase[]): void {
    if (!this.#span.isRecording()) return;
    for (const phase of phases) this.#addPhase(phase);
  }

  end({ status, errorCode, endMs }: Parameters<RequestSpan['end']>[0]): void {
    if (typeof status === 'number') this.#span.setAttribute('http.response.status_code', status);
    const isServerError = typeof status === 'number' && status >= 500;
    const errorType = errorCode ?? (status === 'closed' ? 'client_closed' : undefined);
    if (errorType !== undefined) this.#span.setAttribute('error.type', errorType);
    // According to the semantic conventions, a client error does not mark the server's span as failed.
    if (isServerError) this.#span.setStatus({ code: SpanStatusCode.ERROR });
    this.#span.end(this.#toTime(endMs));
  }
}

/** Converts `performance.now()` to seconds and nanoseconds since 1970. */
type TimeScale = (milliseconds: number) => [seconds: number, nanoseconds: number];

/**
 * All spans of a request share one time scale, so that they align. Each request creates its own, since the wall clock
 * may be adjusted while the process runs and the monotonic clock may not.
 */
function createTimeScale(): TimeScale {
  const originMs = Date.now() - performance.now();
  return (milliseconds) => {
    const nanoseconds = Math.round((originMs + milliseconds) * 1e6);
    return [Math.floor(nanoseconds / 1e9), nanoseconds % 1e9];
  };
}

function toSpanContext({ traceId, spanId, isSampled, state }: TraceContext): SpanContext {
  return {
    traceId,
    spanId,
    traceFlags: isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE,
    isRemote: true,
    ...(state === undefined ? {} : { traceState: createTraceState(state) }),
  };
}

/** Logs failed exports, at most one line per minute, and reports success to the caller. */
class LoggingExporter implements SpanExporter {
  readonly #exporter: SpanExporter;
  readonly #logger: Logger;
  readonly #limiter = new LogLimiter({ intervalMs: WARNING_INTERVAL_MS });

  constructor(exporter: SpanExporter, logger: Logger) {
    this.#exporter = exporter;
    this.#logger = logger;
  }

  export(spans: ReadableSpan[], done: Parameters<SpanExporter['export']>[1]): void {
    this.#exporter.export(spans, ({ error, code }) => {
      if (code !== SUCCESS) this.#warn(spans.length, error);
      done({ code: SUCCESS });
    });
  }

  forceFlush(): Promise<void> {
    return this.#exporter.forceFlush?.() ?? Promise.resolve();
  }

  shutdown(): Promise<void> {
    return this.#exporter.shutdown();
  }

  #warn(spanCount: number, error: Error | undefined): void {
    const lostCount = this.#limiter.next(spanCount);
    if (lostCount === 0) return;
    const cause = (error?.message ?? 'unknown').slice(0, CAUSE_CHARACTERS_MAX);
    this.#logger.warn({ cause, lost_spans: lostCount }, 'traces could not be sent');
  }
}

/** The value of `ExportResultCode.SUCCESS`, whose package is not a direct dependency. */
const SUCCESS = 0;
