/** The command `svc untrust`: undoes `svc trust`. */
import type { Command } from '../command/command.ts';
import { STORE_RULE } from '../configuration/store-choice.ts';
import { runTrustChange, TRUST_OPTIONS } from './trust.ts';
export const untrust: Command = {
	name: 'untrust',
	summary: "Remove the internal authority's root certificate from this machine's trust stores",
	details: ['The root certificate itself and the certificates it issued stay in the certificate store.', STORE_RULE],
	options: TRUST_OPTIONS,
	run: invocation => runTrustChange(invocation, 'untrust'),
};
