// Unix sockets in the data directory: where the control socket is, and paths that are short enough.

import { join } from 'node:path';

/** The control socket, below the data directory, in a folder that only the owner may enter. */
export const CONTROL_FOLDER = 'control';
export const CONTROL_SOCKET = 'socket';

/**
 * The path of the socket `name` in an open folder. The path of a socket has at most 107 bytes; on
 * Linux the path through the descriptor of the folder always fits.
 */
export function unixSocketPath(
  folderPath: string,
  folder: { readonly fd: number },
  name: string,
): string {
  return join(process.platform === 'linux' ? `/proc/self/fd/${folder.fd}` : folderPath, name);
}
