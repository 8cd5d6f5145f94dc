// A labelled form control with a hint and an error, and the controls themselves.

import {
  type InputHTMLAttributes,
  type ReactNode,
  type SelectHTMLAttributes,
  type TextareaHTMLAttributes,
  useId,
} from 'react';
import { classNames } from './class-names.js';
import styles from './field.module.css';

/** The attributes that connect a control with its label, hint and error. */
interface ControlAttributes {
  readonly id: string;
  readonly 'aria-describedby': string | undefined;
  readonly 'aria-invalid': boolean | undefined;
}

interface FieldProps {
  readonly label: string;
  readonly hint?: ReactNode;
  /** What was found and what is expected; undefined if the value is valid. */
  readonly error?: string | undefined;
  /** Whether only screen readers get the label. */
  readonly isLabelHidden?: boolean | undefined;
  readonly children: (control: ControlAttributes) => ReactNode;
}

export function Field({ label, hint, error, isLabelHidden = false, children }: FieldProps) {
  const id = useId();
  const noteId = `${id}-note`;
  const hasNote = hint !== undefined || error !== undefined;
  return (
    <div className={styles.field}>
      <label htmlFor={id} className={isLabelHidden ? 'visually-hidden' : styles.label}>
        {label}
      </label>
      {children({
        id,
        'aria-describedby': hasNote ? noteId : undefined,
        'aria-invalid': error === undefined ? undefined : true,
      })}
      {hasNote && (
        <p id={noteId} className={error === undefined ? styles.hint : styles.error}>
          {error ?? hint}
        </p>
      )}
    </div>
  );
}

interface FieldGroupProps {
  readonly label: string;
  readonly children: ReactNode;
}

/** Several controls with one label. */
export function FieldGroup({ label, children }: FieldGroupProps) {
  return (
    <fieldset className={styles.group}>
      <legend className={styles.label}>{label}</legend>
      {children}
    </fieldset>
  );
}

/** The error of a group of controls, if any. */
export function GroupError({ error }: { readonly error: string | undefined }) {
  if (error === undefined) return null;
  return (
    <p className={styles.error} role="alert">
      {error}
    </p>
  );
}

interface TextBoxProps extends Omit<InputHTMLAttributes<HTMLInputElement>, 'onChange' | 'value'> {
  /** Pass a number for the type `number`, because React then keeps the spelling that the user typed. */
  readonly value: string | number;
  readonly onChange: (text: string) => void;
}

export function TextBox({ className, onChange, ...rest }: TextBoxProps) {
  return (
    <input
      type="text"
      spellCheck={false}
      autoComplete="off"
      className={classNames(styles.control, className)}
      onChange={(event) => onChange(event.target.value)}
      {...rest}
    />
  );
}

interface TextAreaProps
  extends Omit<TextareaHTMLAttributes<HTMLTextAreaElement>, 'onChange' | 'value'> {
  readonly value: string;
  readonly onChange: (text: string) => void;
}

interface SelectProps<Value extends string>
  extends Omit<SelectHTMLAttributes<HTMLSelectElement>, 'onChange' | 'value'> {
  readonly value: Value;
  readonly options: readonly { readonly value: Value; readonly label: string }[];
  readonly onChange: (value: Value) => void;
}

export function Select<Value extends string>({
  value,
  options,
  onChange,
  className,
  ...rest
}: SelectProps<Value>) {
  return (
    <select
      className={classNames(styles.control, styles.select, className)}
      value={value}
      onChange={(event) => onChange(event.target.value as Value)}
      {...rest}
    >
      {options.map((option) => (
        <option key={option.value} value={option.value}>
          {option.label}
        </option>
      ))}
    </select>
  );
}

/** Select options from labels by value. */
export function optionsOf<Value extends string>(labels: Readonly<Record<Value, string>>) {
  return (Object.keys(labels) as Value[]).map((value) => ({ value, label: labels[value] }));
}

/** The properties of a control and of the field around it. */
type InField<Props> = Props & Omit<FieldProps, 'children'>;

export function TextField({ label, hint, error, isLabelHidden, ...rest }: InField<TextBoxProps>) {
  return (
    <Field label={label} hint={hint} error={error} isLabelHidden={isLabelHidden}>
      {(control) => <TextBox {...control} {...rest} />}
    </Field>
  );
}

export function TextAreaField({
  label,
  hint,
  error,
  isLabelHidden,
  className,
  onChange,
  ...rest
}: InField<TextAreaProps>) {
  return (
    <Field label={label} hint={hint} error={error} isLabelHidden={isLabelHidden}>
      {(control) => (
        <textarea
          {...control}
          spellCheck={false}
          className={classNames(styles.control, styles.area, className)}
          onChange={(event) => onChange(event.target.value)}
          {...rest}
        />
      )}
    </Field>
  );
}

export function SelectField<Value extends string>({
  label,
  hint,
  error,
  isLabelHidden,
  ...rest
}: InField<SelectProps<Value>>) {
  return (
    <Field label={label} hint={hint} error={error} isLabelHidden={isLabelHidden}>
      {(control) => <Select {...control} {...rest} />}
    </Field>
  );
}

interface CheckboxProps {
  readonly label: ReactNode;
  readonly isChecked: boolean;
  readonly onChange: (isChecked: boolean) => void;
  readonly disabled?: boolean;
}

export function Checkbox({ label, isChecked, onChange, disabled = false }: CheckboxProps) {
  return (
    <label className={styles.checkbox}>
      <input
        type="checkbox"
        checked={isChecked}
        disabled={disabled}
        onChange={(event) => onChange(event.target.checked)}
      />
      <span>{label}</span>
    </label>
  );
}
