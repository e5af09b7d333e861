/** `svc reload`. */
import type { PlaceTexts } from '../../compiler/incremental/step-places.ts';
import { ADDRESS_OPTION, answerFailure, answerWarnings, member, postToAdmin, TOKEN_RULE } from '../admin-client.ts';
import { adminSettings } from '../admin-settings.ts';
import { type Command, CommandFailure, EXIT, type Invocation } from '../command.ts';
import {
	ADAPTER_OPTION,
	CONFIG_OPTION,
	LANGUAGE_RULE,
	PATH_ARGUMENT,
	readConfiguration,
	requiredSource,
} from '../configuration.ts';
import { print, printError } from '../terminal.ts';

/** Compiles the file here and sends the document, so that imports and relative paths are those of the file. */
export const reload: Command = {
	name: 'reload',
	summary: 'Replace the configuration of a running server',
	details: [
		'Compiles the file, sends the document to the Admin API of the server, and reports whether the server applied it. When it does not, the previous configuration keeps serving and the exit status is 1. The running configuration needs the option `admin`.',
		'Nothing happens if the server serves that configuration already and the files that it names (certificates, keys, trust pools) hold the same; `--force` loads it all the same.',
		'With `--confirm` a configuration is refused if the server could not go back from it: because that would need a restart, or because what is being served no longer compiles.',
		'With `--accept` and `--revert` the file is read only for the address and the token of the server.',
		TOKEN_RULE,
		LANGUAGE_RULE,
	],
	args: [PATH_ARGUMENT],
	options: [
		CONFIG_OPTION,
		ADAPTER_OPTION,
		ADDRESS_OPTION,
		{ name: 'force', summary: 'Load it even if it is being served already, and build and read everything again' },
		{
			name: 'confirm',
			value: 'DURATION',
			summary: 'Go back to the former configuration unless it is confirmed in this time, such as 30s',
		},
		{
			name: 'max-error-rate',
			value: 'RATE',
			summary: 'With --confirm, go back as soon as more than this share of the answers, 0 to 1, are errors',
		},
		{ name: 'accept', summary: 'Confirm the configuration that waits for it, and send none' },
		{ name: 'revert', summary: 'Go back to the configuration before the one that waits, and send none' },
	],
	async run(invocation) {
		const decision = decisionOf(invocation);
		if (decision) return decide(decision, invocation);
		const query = queryOf(invocation);
		const input = await readConfiguration(requiredSource(invocation));
		const { compileConfiguration } = await import('../compilation.ts');
		const { document, places, warnings } = compileConfiguration(input, true);
		const text = JSON.stringify(document);
		if (warnings !== '') printError(`${warnings}\n`);
		const target = { address: invocation.value('address'), settings: document.settings?.admin };
		const send = (type: string, body: string) => postToAdmin(`/load${query}`, target, { type, text: body });
		let answer = places && (await send('application/vnd.svc.placed+json', await placed(text, places)));
		// A server that runs an earlier release takes the whole for a document, and refuses it.
		if (answer === undefined || answer.status === 400) answer = await send('application/json', text);
		if (answer.status !== 200) throw answerFailure(answer, `The server did not apply ${input.name}`);
		printError(answerWarnings(answer));
		const state = member(answer.body, 'unchanged') === true ? 'was being served already' : 'is being served';
		print(`${input.name} ${state} (generation ${String(member(answer.body, 'generation'))}).\n`);
		const until = member(member(answer.body, 'confirm'), 'until');
		if (typeof until === 'number') {
			const seconds = Math.max(0, Math.round((until - Date.now()) / 1000));
			print(`The former configuration comes back in ${seconds} s unless you run: svc reload --accept\n`);
		}
		return EXIT.ok;
	},
};

/** The document with the places that logs show. */
async function placed(document: string, places: PlaceTexts): Promise<string> {
	const { placedText } = await import('../../compiler/incremental/step-places.ts');
	return placedText(document, places);
}

/** `--accept` or `--revert`. */
function decisionOf(invocation: Invocation): 'confirm' | 'revert' | undefined {
	const accepts = invocation.flag('accept');
	const reverts = invocation.flag('revert');
	if (!accepts && !reverts) return undefined;
	const others = ['confirm', 'max-error-rate'].filter(name => invocation.value(name) !== undefined);
	if (invocation.flag('force')) others.push('force');
	if ((accepts && reverts) || others.length > 0) {
		const first = accepts ? '--accept' : '--revert';
		const second = accepts && reverts ? '--revert' : `--${others[0]}`;
		throw new CommandFailure(`\`${first}\` and \`${second}\` cannot be given together.`);
	}
	return accepts ? 'confirm' : 'revert';
}

async function decide(decision: 'confirm' | 'revert', invocation: Invocation): Promise<number> {
	const target = { address: invocation.value('address'), settings: await adminSettings(invocation) };
	const answer = await postToAdmin(`/load/${decision}`, target, undefined);
	const what = decision === 'confirm' ? 'The server confirmed nothing' : 'The server took nothing back';
	if (answer.status !== 200) throw answerFailure(answer, what);
	printError(answerWarnings(answer));
	const generation = String(member(answer.body, 'generation'));
	print(
		decision === 'confirm'
			? `Generation ${generation} stays.\n`
			: `The former configuration is being served again (generation ${generation}).\n`,
	);
	return EXIT.ok;
}

/** What `--force`, `--confirm` and `--max-error-rate` ask of the server, which checks the values. */
function queryOf(invocation: Invocation): string {
	const confirm = invocation.value('confirm');
	const rate = invocation.value('max-error-rate');
	if (rate !== undefined && confirm === undefined) {
		throw new CommandFailure('`--max-error-rate` needs `--confirm`.');
	}
	const query = new URLSearchParams({
		...(invocation.flag('force') ? { force: 'true' } : {}),
		...(confirm === undefined ? {} : { confirm }),
		...(rate === undefined ? {} : { max_error_rate: rate }),
	});
	return query.size === 0 ? '' : `?${query}`;
}
