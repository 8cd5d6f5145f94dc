// Opens a page in the user's browser, if the machine has a desktop.

import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** Resolves to the reason why the page cannot be opened, or to null once the desktop has been asked to open it. */
export async function openPage(url: string): Promise<string | null> {
  const { platform, env } = process;
  const command = platform === 'darwin' ? 'open' : 'xdg-open';
  if (platform !== 'darwin' && !env.DISPLAY && !env.WAYLAND_DISPLAY) {
    return 'this machine has no desktop (neither DISPLAY nor WAYLAND_DISPLAY is set)';
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
