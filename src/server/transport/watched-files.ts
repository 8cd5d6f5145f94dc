// Tells when files may have changed, without looking at the clock: an idle server stays idle. What
// is watched are the folders, since files are replaced rather than written: by a rename, or, in
// Kubernetes, by a link beside them that then leads elsewhere.

import { type FSWatcher, realpathSync, watch } from 'node:fs';
import { dirname } from 'node:path';
import type { Logger } from '../../common/logger.js';

export interface WatchedFiles {
  close(): void;
}

/** Several files are replaced one after the other; who reads in between sees a pair that differs. */
const QUIET_MS = 200;
/** In a folder that never rests, the files are looked at all the same. */
const WAIT_MS_MAX = 2_000;

/**
 * Calls `onChange` after something happened in the folders of the files; whether the files differ
 * is for the caller to see. Paths that lead over links are followed to where they lead now.
 */
export function watchFiles(
  paths: readonly string[],
  onChange: () => void,
  logger: Logger,
): WatchedFiles {
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
      // A folder may itself have been replaced, and a link may lead to another one. Watched before
      // the files are read, so that no change falls between.
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
      // The file is gone for the moment; its folder tells when it is back.
      return [dirname(path)];
    }
  });
  return [...new Set(folders)];
}

function watchFolder(folder: string, onEvent: () => void, logger: Logger): FSWatcher[] {
  const complain = (error: unknown) => {
    const { code } = error as NodeJS.ErrnoException;
    logger.warn(
      { folder, code },
      'the folder cannot be watched: changes of files in it are seen at the next start',
    );
  };
  try {
    const watcher = watch(folder, { persistent: false }, onEvent);
    watcher.on('error', complain);
    return [watcher];
  } catch (error) {
    complain(error);
    return [];
  }
}
