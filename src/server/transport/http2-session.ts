// What one HTTP/2 connection may take, and for how long: the bounds that Node's HTTP/1.1 server has
// of itself. A connection without a stream is idle whatever else arrives on it.

import { constants, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import type { Limits } from '../../common/limits.js';
import { startBodyTimeout } from './connections.js';
import { HEADER_BYTES_MAX } from './server.js';

/** Requests of one client that are under way on one connection; more of them take another. */
const STREAMS_MAX = 100;
/** What a client may send of one body ahead of us, and of all of its bodies: a round trip of 100 ms
 *  then allows 80 Mbit/s and 320 Mbit/s. */
const STREAM_WINDOW_BYTES = 1024 * 1024;
const SESSION_WINDOW_BYTES = 4 * 1024 * 1024;
/** Heads of all streams and replies on their way, beyond which new streams are refused. */
const SESSION_MEGABYTES_MAX = 64;

export const SESSION_OPTIONS = {
  settings: {
    maxHeaderListSize: HEADER_BYTES_MAX,
    maxConcurrentStreams: STREAMS_MAX,
    initialWindowSize: STREAM_WINDOW_BYTES,
    enablePush: false,
  },
  maxSessionMemory: SESSION_MEGABYTES_MAX,
} as const;

type SessionLimits = Pick<Limits, 'headerMsMax' | 'arrivalMsMax' | 'stalledMsMax' | 'keepAliveMs'>;

export interface SessionUse {
  /** Requests that are under way. */
  readonly streamCount: number;
}

export function boundSession(session: ServerHttp2Session, limits: SessionLimits): SessionUse {
  session.setLocalWindowSize(SESSION_WINDOW_BYTES);
  const use = { streamCount: 0 };
  let idleTimer: NodeJS.Timeout | undefined;
  const waitForStream = (msMax: number) => {
    // Says goodbye (GOAWAY) and closes.
    idleTimer = setTimeout(() => session.destroy(), msMax).unref();
  };
  waitForStream(limits.headerMsMax);
  session.on('stream', (stream) => {
    use.streamCount++;
    clearTimeout(idleTimer);
    boundStream(stream, session, limits);
    stream.once('close', () => {
      use.streamCount--;
      if (use.streamCount === 0 && !session.destroyed) waitForStream(limits.keepAliveMs);
    });
  });
  session.once('close', () => clearTimeout(idleTimer));
  return use;
}

function boundStream(
  stream: ServerHttp2Stream,
  session: ServerHttp2Session,
  limits: SessionLimits,
): void {
  const cancel = () => stream.close(constants.NGHTTP2_CANCEL);
  if (!stream.endAfterHeaders) startBodyTimeout(stream, limits.arrivalMsMax, cancel);
  cutWhenStalled(stream, session, limits.stalledMsMax, cancel);
}

/** How often within the time of a stall to look for one: it is cut within an eighth of that more. */
const STALL_LOOKS = 8;

/**
 * Node's own timeout of a stream takes the first one that comes for a write that still moves, so that
 * a stall lasts twice as long.
 */
function cutWhenStalled(
  stream: ServerHttp2Stream,
  session: ServerHttp2Session,
  stalledMsMax: number,
  cut: () => void,
): void {
  let bytesSent = 0;
  let movedAtMs = 0;
  const timer = setInterval(() => {
    if (session.destroyed) return;
    const nowMs = performance.now();
    const { bytesWritten } = session.socket;
    // Before the reply begins it is our work that takes time, and that has a deadline of its own.
    if (!stream.headersSent || bytesWritten !== bytesSent) {
      bytesSent = bytesWritten;
      movedAtMs = nowMs;
    } else if (nowMs - movedAtMs >= stalledMsMax) cut();
  }, stalledMsMax / STALL_LOOKS).unref();
  stream.once('close', () => clearInterval(timer));
}
