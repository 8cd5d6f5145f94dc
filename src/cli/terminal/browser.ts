// Opens a page in the browser of the desktop, if there is one.

import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** Resolves to why the page is not opened; to null when it is left to the desktop. */
export async function openPage(url: string): Promise<string | null> {
  const { platform, env } = process;
  const command = platform === 'darwin' ? 'open' : 'xdg-open';
  if (platform !== 'darwin' && !env.DISPLAY && !env.WAYLAND_DISPLAY) {
    return 'there is no desktop (neither DISPLAY nor WAYLAND_DISPLAY is set)';
  }
  const child = spawn(command, [url], { stdio: 'ignore', detached: true });
  try {
    await once(child, 'spawn');
  } catch (error) {
    return `${command} cannot be run (${(error as Error).message})`;
  }
  child.unref();
  return null;
}
