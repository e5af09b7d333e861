/** `svc untrust`. */
import type { Command } from '../command.ts';
import { STORE_RULE } from '../store-choice.ts';
import { changeTrust, TRUST_OPTIONS } from './trust.ts';

/** Ends this machine's trust in the internal authority. */
export const untrust: Command = {
	name: 'untrust',
	summary: 'Remove the root of the internal authority from the trust stores of this machine',
	details: ['Certificates that were issued, and the root itself, stay in the store.', STORE_RULE],
	options: TRUST_OPTIONS,
	run: invocation => changeTrust(invocation, 'untrust'),
};
