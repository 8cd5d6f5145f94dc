// The fields that filter the audit events.

import { AUDIT_OUTCOMES } from '../../../../../src/common/audit.js';
import { SelectField, TextField } from '../../ui/field.js';
import styles from './audit.module.css';
import { type AuditFilter, OPERATIONS } from './audit-filter.js';

interface AuditFilterFormProps {
  readonly filter: AuditFilter;
  readonly onChange: (filter: AuditFilter) => void;
}

const OPERATION_OPTIONS = [
  { value: '' as const, label: 'all' },
  ...OPERATIONS.map((value) => ({ value, label: value.includes('.') ? value : `${value}.*` })),
];
const OUTCOME_OPTIONS = [
  { value: '' as const, label: 'all' },
  ...AUDIT_OUTCOMES.map((value) => ({ value, label: value })),
];
const TEXTS = [
  { name: 'principal', label: 'Who', type: 'text', placeholder: 'key:…' },
  { name: 'target', label: 'Target', type: 'text', placeholder: 'id or name' },
  { name: 'since', label: 'From', type: 'datetime-local', placeholder: '' },
  { name: 'until', label: 'Until', type: 'datetime-local', placeholder: '' },
] as const;

export function AuditFilterForm({ filter, onChange }: AuditFilterFormProps) {
  return (
    <div className={styles.filter}>
      <SelectField
        label="Operation"
        value={filter.operation}
        options={OPERATION_OPTIONS}
        onChange={(operation) => onChange({ ...filter, operation })}
      />
      <SelectField
        label="Outcome"
        value={filter.outcome}
        options={OUTCOME_OPTIONS}
        onChange={(outcome) => onChange({ ...filter, outcome })}
      />
      {TEXTS.map(({ name, label, type, placeholder }) => (
        <TextField
          key={name}
          label={label}
          type={type}
          placeholder={placeholder}
          value={filter[name]}
          onChange={(text) => onChange({ ...filter, [name]: text })}
        />
      ))}
    </div>
  );
}
