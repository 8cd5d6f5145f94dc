// A BackupService without a disk: it keeps names in memory, with creation times a second apart.

import { SagittaError } from '../../src/common/errors.js';
import type { BackupRecord, BackupService } from '../../src/database/admin/backup.js';

export function createFakeBackups(): BackupService {
  const records = new Map<string, BackupRecord>();
  const make = (): Omit<BackupRecord, 'name'> => ({
    createdAt: new Date(Date.UTC(2026, 0, 1, 0, 0, records.size)).toISOString(),
    byteLength: 4096,
    collectionCount: 1,
  });
  return {
    isConfigured: true,
    async create(name = `made-${records.size}`) {
      if (records.has(name)) {
        throw new SagittaError('backup_exists', `There is a backup with the name "${name}".`);
      }
      const record = { name, ...make() };
      records.set(name, record);
      return record;
    },
    async createAt() {
      return make();
    },
    async list() {
      return [...records.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
    },
  };
}
