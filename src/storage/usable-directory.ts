// Why a directory cannot be the data directory of this process, in words that say what to change: the errors of
// the system name whatever happened to be touched first.

import { constants, type Stats, statSync } from 'node:fs';
import { access, readdir, stat } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { SagittaError } from '../common/errors.js';

/** Throws `configuration_invalid` unless the directory is missing, or can be read and written. */
export async function requireUsable(directory: string): Promise<void> {
  let found: Stats;
  try {
    found = await stat(directory);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw unusable(directory, error);
  }
  if (!found.isDirectory()) throw refusal(directory, 'it is a file, not a directory');
  const { R_OK, W_OK, X_OK } = constants;
  await access(directory, R_OK | W_OK | X_OK).catch((error: unknown) => {
    throw unusable(directory, error);
  });
}

/** What an error of the system means for the directory; other errors unchanged. */
export function unusable(directory: string, error: unknown): unknown {
  if (error instanceof SagittaError) return error;
  const { code, message } = error as NodeJS.ErrnoException;
  // Node's own errors are not about the directory.
  if (code === undefined || String(code).startsWith('ERR_')) return error;
  switch (code) {
    case 'EROFS':
      return refusal(
        directory,
        'its file system is mounted read-only; mount it for writing, or copy the directory to another disk',
        error,
      );
    case 'EACCES':
    case 'EPERM':
      return refusal(directory, `permission denied (${message}). ${ownersOf(directory)}`, error);
    case 'ENOTDIR':
      return refusal(directory, 'a part of its path is a file, not a directory', error);
    default:
      return refusal(directory, message, error);
  }
}

function refusal(directory: string, reason: string, cause?: unknown): SagittaError {
  return new SagittaError(
    'configuration_invalid',
    `The data directory ${directory} cannot be used: ${reason.replace(/\.$/, '')}.`,
    { cause },
  );
}

function ownersOf(directory: string): string {
  let found: Stats | undefined;
  try {
    found = statSync(directory, { throwIfNoEntry: false });
  } catch {
    // A folder above it cannot be entered.
  }
  const { username, uid } = userOfProcess();
  const own = `This process runs as user ${username} (${uid})`;
  if (found === undefined) return `${own}; that user must own the directory and all files in it`;
  const mode = (found.mode & 0o7777).toString(8).padStart(4, '0');
  return found.uid === uid
    ? `${own}, which owns the directory, but its mode is ${mode}: allow access with chmod 700`
    : `${own}; the directory belongs to user ${found.uid} and has the mode ${mode}. Run the service as its owner, or give it away with chown -R ${uid}`;
}

function userOfProcess(): { readonly username: string; readonly uid: number } {
  const uid = process.geteuid?.() ?? -1;
  try {
    return { username: userInfo().username, uid };
  } catch {
    // Containers run as users that have no name.
    return { username: 'without a name', uid };
  }
}

/** Of every disk, and files that are hidden. */
const USUAL_NAMES = /^(?:\.|lost\+found$)/;
const NAMES_SHOWN_MAX = 3;

/**
 * What is suspicious about the directory although it can be used: that others may enter it, and, before the store
 * is made in it (`isNew`), that it has other files. `madeHere`: names that do not count.
 */
export async function suspicionsAbout(
  directory: string,
  { isNew, madeHere }: { readonly isNew: boolean; readonly madeHere: readonly string[] },
): Promise<string[]> {
  const found: string[] = [];
  const { mode } = await stat(directory);
  // Kubernetes makes volumes with `fsGroup` group-writable, and marks them so.
  const isOfGroup = (mode & 0o2007) === 0o2000;
  if ((mode & 0o077) !== 0 && !isOfGroup) {
    found.push(
      `Other users may enter the data directory ${directory} (mode ${(mode & 0o777).toString(8)}). Its files are readable for their owner only; close the directory too: chmod 700.`,
    );
  }
  if (!isNew) return found;
  const names = (await readdir(directory)).filter(
    (name) => !USUAL_NAMES.test(name) && !madeHere.includes(name),
  );
  if (names.length > 0) {
    const shown = names.slice(0, NAMES_SHOWN_MAX).join(', ');
    const others = names.length > NAMES_SHOWN_MAX ? ', …' : '';
    found.push(
      `The directory ${directory} was not a data directory of Sagitta: it has other files (${shown}${others}). A new store is made in it; check the setting if you expected data.`,
    );
  }
  return found;
}
