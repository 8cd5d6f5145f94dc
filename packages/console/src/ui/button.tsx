// Buttons. An icon alone needs a label, which is also its tooltip.

import { Tooltip, TooltipAnchor, TooltipProvider } from '@ariakit/react';
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

/** Without a delay, tooltips would flicker under a passing pointer. */
const TOOLTIP_DELAY_MS = 300;

export function IconButton({ label, kind = 'quiet', className, ...rest }: IconButtonProps) {
  return (
    <TooltipProvider placement="bottom" timeout={TOOLTIP_DELAY_MS}>
      <TooltipAnchor
        render={
          <Button
            kind={kind}
            aria-label={label}
            className={classNames(styles.iconOnly, className)}
            {...rest}
          />
        }
      />
      {/* The button's label says the same to screen readers. A fixed position is not cut off by scrolling ancestors. */}
      <Tooltip portal={false} fixed gutter={4} unmountOnHide aria-hidden className={styles.tooltip}>
        {label}
      </Tooltip>
    </TooltipProvider>
  );
}
