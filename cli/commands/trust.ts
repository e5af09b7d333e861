/** `svc trust`. */
import type { Command, Invocation } from '../command.ts';
import { CommandFailure } from '../command.ts';
import { ADAPTER_OPTION, CONFIG_OPTION } from '../configuration.ts';
import { STORE_RULE, storeFolderOf } from '../store-choice.ts';
import { print } from '../terminal.ts';

/** Options of both commands about trust. */
export const TRUST_OPTIONS: NonNullable<Command['options']> = [
	{ name: 'ca', value: 'ID', summary: 'Internal authority', default: 'local' },
	{ ...CONFIG_OPTION, default: 'none' },
	ADAPTER_OPTION,
];

/** Has this machine trust the internal authority. */
export const trust: Command = {
	name: 'trust',
	summary: 'Install the root of the internal authority into the trust stores of this machine',
	details: [
		'The root is `pki/authorities/local/root.crt` in the store; a server makes it when a site first needs it.',
		'Changed are the trust store of the system (Debian, Red Hat, Arch and their relatives), which needs root, and the NSS databases of the user, which Firefox and Chromium read and which need the program certutil.',
		STORE_RULE,
	],
	options: TRUST_OPTIONS,
	run: invocation => changeTrust(invocation, 'trust'),
};

/** Adds or removes the root, tells what became of each store; fails when one could not be changed. */
export async function changeTrust(invocation: Invocation, action: 'trust' | 'untrust'): Promise<number> {
	const authority = invocation.value('ca') ?? 'local';
	if (!/^(?!\.+$)[A-Za-z0-9._-]{1,64}$/.test(authority)) {
		throw new CommandFailure(`\`${authority}\` cannot be the id of an authority.`);
	}
	const [{ readRoot, trustRoot, untrustRoot }, { thisMachine }, { TrustError }] = await Promise.all([
		import('../../runtime/trust/root-trust.ts'),
		import('../../runtime/trust/machine.ts'),
		import('../../runtime/trust/trust-error.ts'),
	]);
	const root = await readRoot(await storeFolderOf(invocation), authority).catch(error => {
		throw error instanceof TrustError ? new CommandFailure(error.message) : error;
	});
	const change = action === 'trust' ? trustRoot : untrustRoot;
	const { sentences, failures } = await change(thisMachine(process.env), root);
	for (const sentence of sentences) print(`${sentence}\n`);
	if (failures.length > 0) throw new CommandFailure(failures.join(' '));
	return 0;
}
