// What the nodes of a cluster share: the streams of the logs, and announcements.

import type { MessageStream } from '../logs/message-stream.js';

export interface SharedService {
  /** The stream of a log, whether or not it has been created. */
  openStream(name: string): MessageStream;
  /** Creates a log unless it exists. `isStarting`: the service may have been started a moment ago, too. */
  createLog(name: string, options?: { readonly isStarting?: boolean }): Promise<void>;
  /** Sends an announcement to all nodes, and possibly to this one. It may be lost. */
  announce(bytes: Uint8Array): void;
  onAnnouncement(listener: (bytes: Uint8Array) => void): void;
  close(): Promise<void>;
}
