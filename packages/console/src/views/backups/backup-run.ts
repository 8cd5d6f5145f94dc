// The running backup. It is kept outside React, so that it continues while other views are shown.

import type { BackupRecord } from '@sagitta/client';
import { queryClient } from '../../api/queries.js';
import { session } from '../../api/session.js';
import { createStore } from '../../api/store.js';

export type BackupRun =
  | { readonly kind: 'idle' }
  | { readonly kind: 'running'; readonly startedAtMs: number }
  | { readonly kind: 'done'; readonly backup: BackupRecord }
  | { readonly kind: 'failed'; readonly error: unknown };

export const backupRun = createStore<BackupRun>({ kind: 'idle' });

/** If `name` is empty, the server chooses a name. */
export async function startBackup(name: string): Promise<void> {
  if (backupRun.get().kind === 'running') return;
  backupRun.set({ kind: 'running', startedAtMs: Date.now() });
  try {
    const request = name === '' ? {} : { name };
    backupRun.set({ kind: 'done', backup: await session.get().client.backups.create(request) });
  } catch (error) {
    backupRun.set({ kind: 'failed', error });
  }
  void queryClient.invalidateQueries({ queryKey: ['backups'] });
}
