// Buttons. An icon alone needs a label, which is also its tooltip.

import type { LucideIcon } from 'lucide-react';
import type { ButtonHTMLAttributes, ReactNode } from 'react';
import styles from './button.module.css';
import { classNames } from './class-names.js';

interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  readonly kind?: 'primary' | 'plain' | 'quiet' | 'danger';
  readonly icon?: LucideIcon;
  /** Whether an action is in progress: the button shows a spinner and ignores clicks. */
  readonly isBusy?: boolean;
  readonly children?: ReactNode;
}

export function Button({
  kind = 'plain',
  icon: Icon,
  isBusy = false,
  className,
  children,
  disabled,
  onClick,
  ...rest
}: ButtonProps) {
  return (
    <button
      type="button"
      className={classNames(styles.button, styles[kind], className)}
      aria-busy={isBusy}
      disabled={disabled}
      onClick={isBusy ? undefined : onClick}
      {...rest}
    >
      {isBusy ? (
        <span className={styles.spinner} aria-hidden />
      ) : (
        Icon && <Icon size={15} aria-hidden />
      )}
      {children}
    </button>
  );
}

interface IconButtonProps extends Omit<ButtonProps, 'children' | 'icon'> {
  readonly icon: LucideIcon;
  readonly label: string;
}

export function IconButton({ label, kind = 'quiet', className, ...rest }: IconButtonProps) {
  return (
    <Button
      kind={kind}
      aria-label={label}
      title={label}
      className={classNames(styles.iconOnly, className)}
      {...rest}
    />
  );
}
