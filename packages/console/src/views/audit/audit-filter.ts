// The filter of the audit list: the user's input, and the request that it becomes.

import type { AuditRequest } from '@sagitta/client';
import { AUDIT_KINDS, AUDIT_OPERATIONS } from '../../../../../src/common/audit.js';

export interface AuditFilter {
  readonly operation: NonNullable<AuditRequest['operation']> | '';
  readonly outcome: NonNullable<AuditRequest['outcome']> | '';
  readonly principal: string;
  readonly target: string;
  /** Local times in the format of `<input type="datetime-local">`; empty for no bound. */
  readonly since: string;
  readonly until: string;
}

export const NO_FILTER: AuditFilter = {
  operation: '',
  outcome: '',
  principal: '',
  target: '',
  since: '',
  until: '',
};

/** The choices: all operations on one kind of object, or a single operation. */
export const OPERATIONS = AUDIT_KINDS.flatMap((kind) => [
  kind,
  ...AUDIT_OPERATIONS.filter((operation) => operation.startsWith(`${kind}.`)),
]);

/** Leaves out empty members and invalid times. */
export function auditRequestOf(filter: AuditFilter): AuditRequest {
  const { operation, outcome } = filter;
  const [principal, target] = [filter.principal.trim(), filter.target.trim()];
  const [since, until] = [isoOf(filter.since), isoOf(filter.until)];
  return {
    ...(operation !== '' && { operation }),
    ...(outcome !== '' && { outcome }),
    ...(principal !== '' && { principal }),
    ...(target !== '' && { target }),
    ...(since !== undefined && { since }),
    ...(until !== undefined && { until }),
  };
}

function isoOf(local: string): string | undefined {
  const time = new Date(local);
  return Number.isNaN(time.getTime()) ? undefined : time.toISOString();
}
