// Notifies of possible changes of files without polling. Watches the folders, since files are replaced rather than
// written: by a rename or, in Kubernetes, by changing a symbolic link beside them.

import { type FSWatcher, realpathSync, watch } from 'node:fs';
import { dirname } from 'node:path';
import type { Logger } from '../../common/logger.js';

interface WatchedFiles {
  close(): void;
}

/** The pause after a change, since a certificate and its key are replaced one after the other. */
const QUIET_MS = 200;
/** The maximum delay of the callback in a folder that changes all the time. */
const WAIT_MS_MAX = 2_000;

/**
 * Calls `reload` after a possible change of the files, one call at a time, so that the last one wins. Errors are logged
 * with `failureMessage`; the previous contents stay in use.
 */
export function reloadOnChange(
  paths: readonly string[],
  reload: () => Promise<void>,
  { logger, failureMessage }: { logger: Logger; failureMessage: string },
): WatchedFiles {
  let reloading: Promise<void> = Promise.resolve();
  const onChange = () => {
    reloading = reloading.then(reload).catch((error: unknown) => {
      const detail = error instanceof Error ? error.message : String(error);
      logger.error({ detail }, failureMessage);
    });
  };
  return watchFiles(paths, onChange, logger);
}

/**
 * Calls `onChange` after a change in the folders of the files; the caller checks whether the files
 * themselves differ. Symbolic links are followed to their current target.
 */
function watchFiles(paths: readonly string[], onChange: () => void, logger: Logger): WatchedFiles {
  let watchers: FSWatcher[] = [];
  let timer: NodeJS.Timeout | undefined;
  let firstEventMs = 0;

  const stopWatching = () => {
    for (const watcher of watchers.splice(0)) watcher.close();
  };
  const startWatching = () => {
    watchers = foldersOf(paths).flatMap((folder) => watchFolder(folder, schedule, logger));
  };
  const schedule = () => {
    const nowMs = performance.now();
    if (timer === undefined) firstEventMs = nowMs;
    clearTimeout(timer);
    const waitMs = Math.min(QUIET_MS, Math.max(0, firstEventMs + WAIT_MS_MAX - nowMs));
    timer = setTimeout(() => {
      timer = undefined;
      // The folder itself may have been replaced, or a link changed. Watching restarts before the files are read,
      // so that no change is missed.
      stopWatching();
      startWatching();
      onChange();
    }, waitMs);
    timer.unref();
  };

  startWatching();
  return {
    close() {
      clearTimeout(timer);
      stopWatching();
    },
  };
}

function foldersOf(paths: readonly string[]): string[] {
  const folders = paths.flatMap((path) => {
    try {
      return [dirname(path), dirname(realpathSync(path))];
    } catch {
      // The file is missing for the moment; its folder reports when it is back.
      return [dirname(path)];
    }
  });
  return [...new Set(folders)];
}

function watchFolder(folder: string, onEvent: () => void, logger: Logger): FSWatcher[] {
  const warn = (error: unknown) => {
    const { code } = error as NodeJS.ErrnoException;
    logger.warn(
      { folder, code },
      'the folder cannot be watched: changes to files in it take effect at the next start',
    );
  };
  try {
    const watcher = watch(folder, { persistent: false }, onEvent);
    watcher.on('error', warn);
    return [watcher];
  } catch (error) {
    warn(error);
    return [];
  }
}
