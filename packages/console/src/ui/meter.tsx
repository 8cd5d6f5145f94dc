// The used share of a limit, as a bar and in words.

import styles from './meter.module.css';

interface MeterProps {
  readonly label: string;
  readonly used: string;
  readonly limit: string;
  /** 0 to 1; larger shares are shown as full. */
  readonly share: number;
}

/** From this share on, the limit is reported as near. */
const NEAR_SHARE = 0.8;

export function Meter({ label, used, limit, share }: MeterProps) {
  const isNear = share >= NEAR_SHARE;
  return (
    <div className={styles.row}>
      <span>
        {label}
        {isNear && ' (near the limit)'}
      </span>
      <span className={styles.figures}>
        {used} <span className={styles.muted}>of {limit}</span>
      </span>
      <meter
        className={styles.meter}
        aria-label={label}
        aria-valuetext={`${used} of ${limit}`}
        max={1}
        high={NEAR_SHARE}
        value={Math.min(1, share)}
      />
    </div>
  );
}
