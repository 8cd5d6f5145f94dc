// Whether an NVIDIA driver is running, determined without loading it.

import { existsSync } from 'node:fs';

/** Devices of the driver for servers and desktops, of the Windows Subsystem for Linux, and of Jetson. */
const DEVICES = ['/dev/nvidiactl', '/dev/dxg', '/dev/nvmap'];

export const NO_DRIVER = 'no NVIDIA driver was found';

export function hasNvidiaDriver(): boolean {
  return DEVICES.some((path) => existsSync(path));
}
