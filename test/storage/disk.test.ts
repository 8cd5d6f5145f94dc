// What errors of the system mean for the disk.

import assert from 'node:assert/strict';
import { constants } from 'node:os';
import { it } from 'node:test';
import { SagittaError } from '../../src/common/errors.js';
import { translateDiskError } from '../../src/storage/disk.js';

function codeOf(members: { code?: unknown; errno?: number; message?: string }): unknown {
  const error = Object.assign(new Error(members.message ?? ''), members);
  const translated = translateDiskError(error);
  return translated instanceof SagittaError ? translated.code : 'unchanged';
}

it('a full disk and an exceeded quota are storage_full', () => {
  const { EDQUOT } = constants.errno;
  assert.equal(codeOf({ code: 'ENOSPC' }), 'storage_full');
  // Node has no name for this error.
  const code = `Unknown system error -${EDQUOT}`;
  assert.equal(codeOf({ code, errno: -EDQUOT }), 'storage_full');
  assert.equal(codeOf({ code: 'EACCES', errno: -13 }), 'unchanged');
});
