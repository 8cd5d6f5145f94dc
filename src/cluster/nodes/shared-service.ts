// What the nodes of a cluster share.

import type { MessageStream } from '../logs/message-stream.js';
import type { AnnouncementBus } from './members.js';

export interface SharedService extends AnnouncementBus {
  /** The stream of a log, whether it has been made or not. */
  openStream(name: string): MessageStream;
  /** Makes a log; does nothing when it is there. `isStarting`: the service may have been started a moment ago, too. */
  createLog(name: string, options?: { readonly isStarting?: boolean }): Promise<void>;
  close(): Promise<void>;
}
