// The metrics of the HTTP side: requests, refusals and connections.

import { ERROR_TITLES, type ErrorCode } from '../../common/errors.js';
import { type Metrics, SECONDS_BUCKETS } from '../../platform/metrics.js';

export interface HttpMetrics {
  /** `route` is the path of the route with its placeholders, so that there are few of them. */
  requestEnded(request: {
    readonly method: string;
    readonly route: string;
    readonly status: number | 'closed';
    readonly seconds: number;
  }): void;
  requestFailed(code: ErrorCode): void;
  /** A body or a reply that goes row by row is under way. */
  streamOpened(direction: StreamDirection): StreamCount;
}

export type StreamDirection = 'in' | 'out';

/** Of one stream, from its begin to its end. */
export interface StreamCount {
  /** Of all its rows, what has gone through so far: they are durable, or sent. */
  advance(rowCount: number): void;
  close(): void;
}

/** What only the start of the process can meet. */
const CODES_WITHOUT_REPLY: readonly ErrorCode[] = [
  'configuration_invalid',
  'data_directory_locked',
  'data_corrupt',
];

export function createHttpMetrics(
  metrics: Metrics,
  read: {
    readonly requestsInFlight: () => number;
    readonly connections: () => Promise<number>;
    readonly bodyBytesInFlight: () => number;
    readonly replyBytesInFlight: () => number;
    readonly eventLoopDelayMs: () => number;
    /** Null without TLS. */
    readonly certificateExpiresAtMs: (() => number) | null;
  },
): HttpMetrics {
  const observeRequest = metrics.addHistogram(
    'sagitta_http_request_duration_seconds',
    'Seconds from the head of a request to the end of its reply; the count is the number of requests. Status "closed": the client went away first.',
    { buckets: SECONDS_BUCKETS, labels: ['method', 'route', 'status'] },
  );
  const countRefused = metrics.addCounter(
    'sagitta_http_refusals_total',
    'Requests that were answered with an error, by its code.',
    {
      name: 'code',
      values: (Object.keys(ERROR_TITLES) as ErrorCode[]).filter(
        (code) => !CODES_WITHOUT_REPLY.includes(code),
      ),
    },
  );
  const countRows = metrics.addCounter(
    'sagitta_stream_rows_total',
    'Rows of streams: written from bodies (in) and sent in replies (out).',
    { name: 'direction', values: ['in', 'out'] },
  );
  let streamCount = 0;
  metrics.addGauge(
    'sagitta_streams_in_flight',
    'Bodies and replies under way that go row by row.',
    () => streamCount,
  );
  metrics.addGauge(
    'sagitta_http_requests_in_flight',
    'Requests whose reply is not sent to its last byte.',
    read.requestsInFlight,
  );
  metrics.addGauge('sagitta_http_connections', 'Open connections.', read.connections);
  metrics.addGauge(
    'sagitta_http_body_bytes_in_flight',
    'Bodies that are being received or worked on.',
    read.bodyBytesInFlight,
  );
  metrics.addGauge(
    'sagitta_http_reply_bytes_in_flight',
    'Replies that are being made, or wait to be taken by their clients.',
    read.replyBytesInFlight,
  );
  metrics.addGauge(
    'sagitta_event_loop_delay_seconds',
    'How late the main thread was lately; 0 while nothing is under way.',
    () => read.eventLoopDelayMs() / 1000,
  );
  const { certificateExpiresAtMs } = read;
  if (certificateExpiresAtMs !== null) {
    metrics.addGauge(
      'sagitta_tls_certificate_expiry_timestamp_seconds',
      'When the certificate of the server ends, Unix time; only with TLS.',
      () => certificateExpiresAtMs() / 1000,
    );
  }
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
