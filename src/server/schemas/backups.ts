// Requests and replies about backups.

import { z } from 'zod';
import { BACKUP_NAME_PATTERN } from '../../database/admin/backup.js';
import { count } from './basics.js';

const example = {
  name: 'before-upgrade',
  created_at: '2026-11-21T08:00:00.000Z',
  byte_length: 1_204_224,
  collections: 3,
};
const members = {
  created_at: z.iso.datetime().meta({ description: 'The time of the snapshot.' }),
  byte_length: count('The size of all its files.'),
  collections: count('The number of collections.'),
};
const name = z
  .string()
  .regex(BACKUP_NAME_PATTERN)
  .meta({
    description: 'The name of its folder in the backup directory.',
    examples: [example.name],
  });
const directory = z.string().min(1);
const record = z.object({ name, ...members }).meta({
  id: 'Backup',
  description: 'A folder that contains a data directory as of one point in time.',
  examples: [example],
});

export const backupSchemas = {
  create: z
    .strictObject({
      name: name.optional().meta({ description: 'By default generated from the time.' }),
    })
    .meta({
      id: 'BackupCreate',
      description: 'A backup to create.',
      examples: [{ name: example.name }, {}],
    }),
  /** For the operator on the control socket, who can write to any folder anyway. */
  createAt: z.strictObject({ directory }),
  recordAt: z.object({ directory, ...members }),
  record,
  list: z
    .object({ backups: z.array(record).meta({ description: 'In the order of their names.' }) })
    .meta({ id: 'BackupList', description: 'All backups.', examples: [{ backups: [example] }] }),
};
