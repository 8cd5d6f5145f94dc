// What the nodes of a cluster share: the streams of the logs, and announcements.

import type { MessageStream } from '../logs/message-stream.js';

/** A server that stores a log. */
export interface LogServer {
  readonly name: string;
  readonly isLeader: boolean;
  /** Whether the leader has not heard from it for longer than from a server that is up. */
  readonly isSilent: boolean;
  /** How long the leader has not heard from it, in milliseconds; 0 for the leader itself. */
  readonly silentMs: number;
  /** Operations of the log that it has not received yet. */
  readonly lag: number;
}

/** Whether the logs accept messages at the moment. */
export interface ServiceState {
  /**
   * `disconnected`: no server can be reached. `no_quorum`: servers answer, but fewer than most of those that store the log
   * of the catalogue, so that nothing can be written.
   */
  readonly kind: 'connected' | 'disconnected' | 'no_quorum';
  /** For operators: what was found, and what to do. */
  readonly detail: string;
  /** Since when, on `performance.now`. */
  readonly sinceMs: number;
  /** The servers that store the log of the catalogue; empty if unknown. */
  readonly servers: readonly LogServer[];
}

export interface SharedService {
  /** As of the last two seconds. */
  readonly state: ServiceState;
  /** The stream of a log, whether or not it has been created. */
  openStream(name: string): MessageStream;
  /** Creates a log unless it exists. `isStarting`: the service may have been started a moment ago, too. */
  createLog(name: string, options?: { readonly isStarting?: boolean }): Promise<void>;
  /** Sends an announcement to all nodes, and possibly to this one. It may be lost. */
  announce(bytes: Uint8Array): void;
  onAnnouncement(listener: (bytes: Uint8Array) => void): void;
  close(): Promise<void>;
}
