// HTTP metrics: requests, errors, streams and connections.

import { ERROR_TITLES, type ErrorCode } from '../../common/errors.js';
import { type Metrics, SECONDS_BUCKETS } from '../../platform/metrics.js';

export interface HttpMetrics {
  /** `route` is the path with its placeholders, so that the label has few values. */
  requestEnded(request: {
    readonly method: string;
    readonly route: string;
    readonly status: number | 'closed';
    readonly seconds: number;
  }): void;
  requestFailed(code: ErrorCode): void;
  /** A streamed body or reply has begun. */
  streamOpened(direction: StreamDirection): StreamCount;
}

export type StreamDirection = 'in' | 'out';

/** The row count of one stream. */
export interface StreamCount {
  /** Sets the number of rows so far that are durable or sent. */
  advance(rowCount: number): void;
  close(): void;
}

/** Errors that only occur before the service listens. */
const CODES_WITHOUT_REPLY: readonly ErrorCode[] = [
  'configuration_invalid',
  'data_directory_locked',
  'data_corrupt',
];

/** Values that are read at each scrape. */
interface HttpReadings {
  readonly requestsInFlight: () => number;
  readonly connections: () => Promise<number>;
  readonly bodyBytesInFlight: () => number;
  readonly replyBytesInFlight: () => number;
  readonly eventLoopDelayMs: () => number;
  /** Null without TLS. */
  readonly certificateExpiresAtMs: (() => number) | null;
}

export function createHttpMetrics(metrics: Metrics, readings: HttpReadings): HttpMetrics {
  const observeRequest = metrics.addHistogram(
    'sagitta_http_request_duration_seconds',
    'Time from the headers of a request to the end of its reply; the count is the number of requests. Status "closed": the client disconnected before the reply.',
    { buckets: SECONDS_BUCKETS, labels: ['method', 'route', 'status'] },
  );
  const countRefused = metrics.addCounter(
    'sagitta_http_refusals_total',
    'Requests that failed, by error code.',
    {
      name: 'code',
      values: (Object.keys(ERROR_TITLES) as ErrorCode[]).filter(
        (code) => !CODES_WITHOUT_REPLY.includes(code),
      ),
    },
  );
  const countRows = metrics.addCounter(
    'sagitta_stream_rows_total',
    'Rows of streams: written from request bodies (in) or sent in replies (out).',
    { name: 'direction', values: ['in', 'out'] },
  );
  let streamCount = 0;
  metrics.addGauge(
    'sagitta_streams_in_flight',
    'Streamed bodies and replies in progress.',
    () => streamCount,
  );
  addHttpGauges(metrics, readings);
  return {
    requestEnded({ method, route, status, seconds }) {
      observeRequest(seconds, { method, route, status });
    },
    requestFailed: (code) => countRefused(1, { code }),
    streamOpened(direction) {
      streamCount++;
      let counted = 0;
      return {
        advance(rowCount) {
          countRows(rowCount - counted, { direction });
          counted = rowCount;
        },
        close() {
          streamCount--;
        },
      };
    },
  };
}

function addHttpGauges(metrics: Metrics, readings: HttpReadings): void {
  metrics.addGauge(
    'sagitta_http_requests_in_flight',
    'Requests whose reply has not been sent completely.',
    readings.requestsInFlight,
  );
  metrics.addGauge('sagitta_http_connections', 'Open connections.', readings.connections);
  metrics.addGauge(
    'sagitta_http_body_bytes_in_flight',
    'Memory for request bodies that are being received or processed.',
    readings.bodyBytesInFlight,
  );
  metrics.addGauge(
    'sagitta_http_reply_bytes_in_flight',
    'Memory for replies that are being produced or have not been read by their clients.',
    readings.replyBytesInFlight,
  );
  metrics.addGauge(
    'sagitta_event_loop_delay_seconds',
    'Event loop delay of the main thread; 0 while no request is in progress.',
    () => readings.eventLoopDelayMs() / 1000,
  );
  const { certificateExpiresAtMs } = readings;
  if (certificateExpiresAtMs !== null) {
    metrics.addGauge(
      'sagitta_tls_certificate_expiry_timestamp_seconds',
      "Expiry of the server's certificate, Unix time; with TLS only.",
      () => certificateExpiresAtMs() / 1000,
    );
  }
}
