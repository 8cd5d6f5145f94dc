// HTTP metrics: requests, errors, streams and connections; and the requests in the history of traffic.

import type { ErrorCode } from '../../common/errors.js';
import type { Metrics } from '../../platform/metrics.js';

export interface HttpMetrics {
  /** `route` is the path with placeholders, so that the label has few values. */
  requestEnded(request: {
    readonly method: string;
    readonly route: string;
    readonly status: number | 'closed';
    readonly seconds: number;
    /** Whether the history of traffic counts the request. */
    readonly isTraffic: boolean;
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

/** Values read at each scrape. */
interface HttpReadings {
  readonly requestsInFlight: () => number;
  readonly requestsWaiting: () => number;
  readonly connections: () => Promise<number>;
  readonly bodyBytesInFlight: () => number;
  readonly replyBytesInFlight: () => number;
  readonly eventLoopDelayMs: () => number;
  /** Null without TLS. */
  readonly certificateExpiresAtMs: (() => number) | null;
}

export function createHttpMetrics(metrics: Metrics, readings: HttpReadings): HttpMetrics {
  const observeRequest = metrics.addHistogram('sagitta_http_request_duration_seconds');
  const countRefused = metrics.addCounter('sagitta_http_refusals_total');
  const countRows = metrics.addCounter('sagitta_stream_rows_total');
  const { traffic } = metrics;
  let streamCount = 0;
  metrics.addReading('sagitta_streams_in_flight', () => streamCount);
  addHttpGauges(metrics, readings);
  return {
    requestEnded({ method, route, status, seconds, isTraffic }) {
      observeRequest(seconds, { method, route, status });
      if (isTraffic) traffic.requestEnded(seconds * 1000, status !== 'closed' && status >= 400);
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
  metrics.addReading('sagitta_http_requests_in_flight', readings.requestsInFlight);
  metrics.addReading('sagitta_http_requests_waiting', readings.requestsWaiting);
  metrics.addReading('sagitta_http_connections', readings.connections);
  metrics.addReading('sagitta_http_body_bytes_in_flight', readings.bodyBytesInFlight);
  metrics.addReading('sagitta_http_reply_bytes_in_flight', readings.replyBytesInFlight);
  metrics.addReading('sagitta_event_loop_delay_seconds', () => readings.eventLoopDelayMs() / 1000);
  const { certificateExpiresAtMs } = readings;
  if (certificateExpiresAtMs !== null) {
    metrics.addReading(
      'sagitta_tls_certificate_expiry_timestamp_seconds',
      () => certificateExpiresAtMs() / 1000,
    );
  }
}
