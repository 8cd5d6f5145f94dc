// Settings for servers under test on a busy machine.

/**
 * A busy machine delays the event loop, and a server refuses requests if the delay reaches a second. Tests of that
 * limit set it themselves.
 */
export const PATIENT_SETTINGS = { SAGITTA_EVENT_LOOP_DELAY_MS_MAX: '60000' } as const;
export const PATIENT_LIMITS = { eventLoopDelayMsMax: 60_000 } as const;
