// Explains why a directory cannot be the data directory of this process, and what to change. The errors of the system
// only name whatever was accessed first.

import { constants, type Stats, statSync } from 'node:fs';
import { access, readdir, stat } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { SagittaError } from '../common/errors.js';

/** Throws `configuration_invalid` unless the directory is missing or can be read and written. */
export async function requireUsable(directory: string): Promise<void> {
  let found: Stats;
  try {
    found = await stat(directory);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw unusableDirectory(directory, error);
  }
  if (!found.isDirectory()) throw refusal(directory, 'it is a file, not a directory');
  const { R_OK, W_OK, X_OK } = constants;
  await access(directory, R_OK | W_OK | X_OK).catch((error: unknown) => {
    throw unusableDirectory(directory, error);
  });
}

/** Translates an error of the system; returns other errors unchanged. */
export function unusableDirectory(directory: string, error: unknown): unknown {
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
      return refusal(
        directory,
        `permission denied (${message}). ${describeOwner(directory)}`,
        error,
      );
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

function describeOwner(directory: string): string {
  let found: Stats | undefined;
  try {
    found = statSync(directory, { throwIfNoEntry: false });
  } catch {
    // A parent folder cannot be accessed.
  }
  const { name, uid } = userOfProcess();
  const own = `This process runs as ${name} (${uid})`;
  if (found === undefined) return `${own}; that user must own the directory and all files in it`;
  const mode = (found.mode & 0o7777).toString(8).padStart(4, '0');
  return found.uid === uid
    ? `${own}, which owns the directory, but its mode is ${mode}: allow access with chmod 700`
    : `${own}; the directory belongs to user ${found.uid} and has mode ${mode}. Run the service as that user, or change the owner with chown -R ${uid}`;
}

function userOfProcess(): { readonly name: string; readonly uid: number } {
  const uid = process.geteuid?.() ?? -1;
  try {
    return { name: `user ${userInfo().username}`, uid };
  } catch {
    // Containers may run as a user without a name.
    return { name: 'a user without a name', uid };
  }
}

/** Hidden files and lost+found, which exist on many disks. */
const USUAL_NAMES = /^(?:\.|lost\+found$)/;
const NAMES_SHOWN_MAX = 3;

/**
 * Describes what is suspicious about a usable directory: that other users can access it and, if a new store is about to
 * be created, that it contains other files. `ownNames` are the entries that this process created.
 */
export async function directoryWarnings(
  directory: string,
  { isNew, ownNames }: { readonly isNew: boolean; readonly ownNames: readonly string[] },
): Promise<string[]> {
  const found: string[] = [];
  const { mode } = await stat(directory);
  // Kubernetes makes volumes with `fsGroup` group-writable and sets this bit.
  const isOfGroup = (mode & 0o2007) === 0o2000;
  if ((mode & 0o077) !== 0 && !isOfGroup) {
    found.push(
      `Other users can access the data directory ${directory} (mode ${(mode & 0o777).toString(8)}). Its files are readable only by their owner; restrict the directory too with chmod 700.`,
    );
  }
  if (!isNew) return found;
  const names = (await readdir(directory)).filter(
    (name) => !USUAL_NAMES.test(name) && !ownNames.includes(name),
  );
  if (names.length > 0) {
    const shown = names.slice(0, NAMES_SHOWN_MAX).join(', ');
    const others = names.length > NAMES_SHOWN_MAX ? ', …' : '';
    found.push(
      `The directory ${directory} was not a data directory of Sagitta: it contains other files (${shown}${others}). A new store is created in it; check the setting if you expected data.`,
    );
  }
  return found;
}
