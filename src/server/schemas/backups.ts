// Requests and replies about backups.

import { z } from 'zod';
import { BACKUP_NAME_PATTERN } from '../../database/backup.js';

const example = {
  name: 'before-upgrade',
  created_at: '2026-11-21T08:00:00.000Z',
  byte_length: 1_204_224,
  collections: 3,
};
const members = {
  created_at: z.iso.datetime().meta({ description: 'The moment that it keeps.' }),
  byte_length: z.int().meta({ description: 'Of all its files.' }),
  collections: z.int().meta({ description: 'How many there were.' }),
};
const name = z
  .string()
  .regex(BACKUP_NAME_PATTERN)
  .meta({
    description: 'Of its folder in the directory of backups.',
    examples: [example.name],
  });
const record = z.object({ name, ...members }).meta({
  id: 'Backup',
  description: 'A folder that is a data directory of one moment.',
  examples: [example],
});

export const backupSchemas = {
  create: z
    .strictObject({
      name: name.optional().meta({ description: 'Made of the time when absent.' }),
    })
    .meta({ id: 'BackupCreate', examples: [{ name: example.name }, {}] }),
  /** Of the operator, who may write to any folder of the machine anyway. */
  createAt: z.strictObject({ directory: z.string().min(1) }),
  record,
  list: z
    .object({ backups: z.array(record) })
    .meta({ id: 'BackupList', examples: [{ backups: [example] }] }),
};
