// A field for an optional number.

import { TextField } from './field.js';

interface NumberFieldProps {
  readonly label: string;
  /** Undefined if the field is empty. */
  readonly value: number | undefined;
  /** What applies to an empty field. */
  readonly placeholder: string;
  readonly error?: string | undefined;
  readonly onChange: (value: number | undefined) => void;
}

export function NumberField({ label, value, placeholder, error, onChange }: NumberFieldProps) {
  return (
    <TextField
      label={label}
      type="number"
      step="any"
      placeholder={placeholder}
      error={error}
      value={value ?? ''}
      onChange={(text) => onChange(text === '' ? undefined : Number(text))}
    />
  );
}
