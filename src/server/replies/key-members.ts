// API keys under the names of the API, for commands that work without a server.

import type { z } from 'zod';
import type { ApiKeyInput, ApiKeyRecord } from '../../database/admin/api-keys.js';
import { keySchemas } from '../schemas/keys.js';
import { toProperties } from '../wire/property-names.js';
import { createRecordWriter } from './record-writer.js';

const writeRecord = createRecordWriter(keySchemas.record);

export function apiKeyMembers(record: ApiKeyRecord): z.output<typeof keySchemas.record> {
  return JSON.parse(writeRecord(record));
}

/** The input for a new key, which the database validates. */
export function apiKeyInput(members: object): ApiKeyInput {
  const sent = { expires_at: null, ...members } as z.output<typeof keySchemas.create>;
  return toProperties(keySchemas.create, sent);
}
