/** Every row of the bench, in the order printed. */
import { PROXYING } from './proxying.ts';
import { RESOURCES } from './resources.ts';
import { RESPONDING } from './responding.ts';
import type { Task } from './task.ts';

/** The rows. */
export const TASKS: readonly Task[] = [...RESPONDING, ...PROXYING, ...RESOURCES];
