/** The command `svc diff`: shows which requests two configurations handle differently. */
import type { ConfigurationDiff } from '../../compiler/diff/configuration-diff.ts';
import { quoteWord } from '../command/arguments.ts';
import { type Command, CommandFailure, EXIT_STATUS, type Invocation } from '../command/command.ts';
import { print } from '../command/terminal.ts';
import {
	type ConfigurationSource,
	LANGUAGE_RULE,
	readConfiguration,
	requiredSource,
} from '../configuration/configuration.ts';
import {
	ADDRESS_OPTION,
	answerFailure,
	answerWarnings,
	memberOf,
	postToAdmin,
	TOKEN_RULE,
} from '../control/admin-client.ts';

/** Exit status if the configurations cannot be compared. */
const NOT_COMPARABLE_STATUS = 2;

const FORMATS = ['text', 'markdown', 'json'] as const;

type Format = (typeof FORMATS)[number];

export const diff: Command = {
	name: 'diff',
	summary: 'Show for which requests two configurations behave differently',
	details: [
		'Derives requests from both configurations: every host with every path at the border of a pattern, and methods, fields, parameters and addresses for which a matcher holds, or does not. Each runs through the compiled handlers of both, without a network, with an upstream that answers in several ways or cannot be reached. Compared are status, fields, body, what an upstream receives, and the settings of steps whose effect a single request does not show, such as timeouts, passwords, compression and caching.',
		'The exit status is 0 if no difference was found, 1 if there are differences, and 2 if the configurations cannot be compared. It names what may hide differences: matchers for which no requests can be derived, and the bound on requests.',
		'With `--running`, the old configuration is the one that a server runs. The server compares: it replaces secrets, reads neither files nor the environment, stops after two seconds or 2,000 requests, and applies nothing.',
		LANGUAGE_RULE,
		TOKEN_RULE,
	],
	args: [
		{
			name: 'OLD',
			required: true,
			offers: 'file',
			summary: 'Configuration as it was; - reads standard input. With --running, the only argument is NEW',
		},
		{ name: 'NEW', offers: 'file', summary: 'Configuration as it will be' },
	],
	options: [
		{ name: 'running', summary: 'Compare with the configuration that a server runs' },
		ADDRESS_OPTION,
		{
			name: 'format',
			valueName: 'FORMAT',
			offers: FORMATS,
			summary: 'text, markdown (for pull requests) or json',
			default: 'text',
		},
		{ name: 'max', valueName: 'NUMBER', summary: 'Maximum number of requests to derive', default: '10000' },
	],
	async run(invocation) {
		const format = FORMATS.find(candidate => candidate === (invocation.value('format') ?? 'text'));
		if (!format) {
			throw new CommandFailure(
				`${quoteWord(invocation.value('format')!)} is not a format; give text, markdown or json.`,
				{
					status: NOT_COMPARABLE_STATUS,
				},
			);
		}
		try {
			return await (invocation.flag('running')
				? compareWithRunning(invocation, format)
				: compareFiles(invocation, format));
		} catch (error) {
			if (!(error instanceof CommandFailure)) throw error;
			throw new CommandFailure(error.message, { status: NOT_COMPARABLE_STATUS, preamble: error.preamble });
		}
	},
};

async function compareFiles(invocation: Invocation, format: Format): Promise<number> {
	const maxRequests = Number(invocation.value('max') ?? 10_000);
	if (!Number.isInteger(maxRequests) || maxRequests < 1) throw new CommandFailure('`--max` takes a number from 1.');
	const [oldPath, newPath] = invocation.args as readonly [string, string | undefined];
	if (newPath === undefined) throw new CommandFailure('Name the new configuration, too, or give `--running`.');
	if (invocation.value('address') !== undefined) throw new CommandFailure('`--address` needs `--running`.');
	if (oldPath === '-' && newPath === '-') throw new CommandFailure('Standard input can be read only once.');
	const { compileConfiguration } = await import('../configuration/compilation.ts');
	const compileFile = async (source: ConfigurationSource) => {
		const input = await readConfiguration(source);
		const { plan, locate, files } = compileConfiguration(input);
		return { name: input.name, plan, locate, files: input.path === undefined ? files : [...files, input.path] };
	};
	const oldConfiguration = await compileFile(sourceOf(oldPath));
	const newConfiguration = await compileFile(sourceOf(newPath));
	const { diffConfigurations } = await import('../../compiler/diff/configuration-diff.ts');
	const { dryRunEnvironment } = await import('../../runtime/compile/dry-run-environment.ts');
	const result = await diffConfigurations(
		oldConfiguration,
		newConfiguration,
		dryRunEnvironment(process.cwd()),
		maxRequests,
	);
	return printDiff(result, format, oldConfiguration.name, newConfiguration.name);
}

/** Asks a running server what a configuration would change, and prints the answer. */
async function compareWithRunning(invocation: Invocation, format: Format): Promise<number> {
	if (invocation.args.length > 1) throw new CommandFailure('`--running` takes one configuration.');
	if (invocation.value('max') !== undefined) throw new CommandFailure('`--running` and `--max` cannot be combined.');
	const input = await readConfiguration(sourceOf(invocation.args[0]!));
	const { compileConfiguration } = await import('../configuration/compilation.ts');
	const { document } = compileConfiguration(input);
	const target = { address: invocation.value('address'), settings: document.settings?.admin };
	const payload = { type: 'application/json', text: JSON.stringify(document) };
	const answer = await postToAdmin('/load?dry_run', target, payload);
	if (answer.status !== 200) throw answerFailure(answer, 'The server did not compare the configuration');
	if (memberOf(answer.body, 'result') === 'refused')
		throw new CommandFailure(`The server would refuse ${input.name}.`, { preamble: answerWarnings(answer) });
	const diff = memberOf(answer.body, 'diff');
	const unavailableReason =
		memberOf(diff, 'unavailable') ?? (diff === undefined ? 'The server is too old.' : undefined);
	if (unavailableReason !== undefined) throw new CommandFailure(String(unavailableReason));
	const { diffFromJson } = await import('../../compiler/diff/render-diff.ts');
	return printDiff(diffFromJson(diff), format, 'the running configuration', input.name);
}

/** Prints a comparison. Returns the exit status. */
async function printDiff(result: ConfigurationDiff, format: Format, oldName: string, newName: string): Promise<number> {
	const { diffAsJson, isSame, renderDiff, renderDiffAsMarkdown } = await import('../../compiler/diff/render-diff.ts');
	if (format === 'json') print(`${JSON.stringify(diffAsJson(result), undefined, 2)}\n`);
	else print((format === 'markdown' ? renderDiffAsMarkdown : renderDiff)(result, oldName, newName));
	return isSame(result) ? EXIT_STATUS.ok : EXIT_STATUS.failed;
}

function sourceOf(file: string): ConfigurationSource {
	return requiredSource({ args: [file], value: () => undefined });
}
