// The vocabulary of audit events, by which they can be selected.

/** All audited operations, as object and action. */
export const AUDIT_OPERATIONS = [
  'collection.create',
  'collection.update',
  'collection.clone',
  'collection.rename',
  'collection.move',
  'collection.delete',
  'alias.set',
  'alias.change',
  'alias.delete',
  'key.create',
  'key.rotate',
  'key.revoke',
  'backup.create',
  'node.drain',
  'node.undrain',
] as const;
export type AuditOperation = (typeof AUDIT_OPERATIONS)[number];

/** Selects all operations on one kind of object. */
export const AUDIT_KINDS = ['collection', 'alias', 'key', 'backup', 'node'] as const;
export type AuditKind = (typeof AUDIT_KINDS)[number];

/** `refused`: the request was wrong or not permitted; `failed`: the service could not carry it out. */
export const AUDIT_OUTCOMES = ['succeeded', 'refused', 'failed'] as const;
export type AuditOutcome = (typeof AUDIT_OUTCOMES)[number];
