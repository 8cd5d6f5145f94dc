// Unix sockets in the data directory: the location of the control socket, and paths that are short enough.

import { join } from 'node:path';

/** The control socket is in a folder of the data directory that only the owner can access. */
export const CONTROL_FOLDER = 'control';
export const CONTROL_SOCKET = 'socket';

/**
 * The path of the socket `name` in an open folder. A socket path has at most 107 bytes; on Linux, the path through the
 * file descriptor of the folder always fits.
 */
export function unixSocketPath(
  folderPath: string,
  folder: { readonly fd: number },
  name: string,
): string {
  return join(process.platform === 'linux' ? `/proc/self/fd/${folder.fd}` : folderPath, name);
}
