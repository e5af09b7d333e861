/** `svc diff`. */
import { quoteWord } from '../command/arguments.ts';
import { type Command, CommandFailure, EXIT_STATUS, type Invocation } from '../command/command.ts';
import { print } from '../command/terminal.ts';
import {
	type ConfigurationSource,
	LANGUAGE_RULE,
	readConfiguration,
	requiredSource,
} from '../configuration/configuration.ts';

/** Exit status if the configurations cannot be compared. */
const NOT_COMPARABLE = 2;

const FORMATS = ['text', 'markdown', 'json'] as const;

/** Compares what two configurations mean for requests. */
export const diff: Command = {
	name: 'diff',
	summary: 'Show for which requests two configurations behave differently',
	details: [
		'Derives requests from both configurations: every host with every path at the border of a pattern, and methods, fields, parameters and addresses for which a matcher holds, or does not. Each runs through the compiled handlers of both, without a network, with an upstream that answers in several ways or cannot be reached. Compared are status, fields, body, what an upstream receives, and the settings of steps whose effect a single request does not show, such as time-outs, passwords, compression and caching.',
		'The exit status is 0 if no difference was found, 1 if there are differences, and 2 if the configurations cannot be compared. What may hide differences is named: matchers for which no requests can be derived, and the bound on requests.',
		LANGUAGE_RULE,
	],
	args: [
		{ name: 'OLD', required: true, offers: 'file', summary: 'Configuration as it was; - reads standard input' },
		{ name: 'NEW', required: true, offers: 'file', summary: 'Configuration as it will be' },
	],
	options: [
		{
			name: 'format',
			value: 'FORMAT',
			offers: FORMATS,
			summary: 'text, markdown (for pull requests) or json',
			default: 'text',
		},
		{ name: 'max', value: 'NUMBER', summary: 'Maximum number of requests to derive', default: '10000' },
	],
	async run(invocation) {
		const format = FORMATS.find(one => one === (invocation.value('format') ?? 'text'));
		if (!format) {
			throw new CommandFailure(
				`${quoteWord(invocation.value('format')!)} is not a format; give text, markdown or json.`,
				{
					status: NOT_COMPARABLE,
				},
			);
		}
		try {
			return await compare(invocation, format);
		} catch (error) {
			if (!(error instanceof CommandFailure)) throw error;
			throw new CommandFailure(error.message, { status: NOT_COMPARABLE, before: error.before });
		}
	},
};

async function compare(invocation: Invocation, format: (typeof FORMATS)[number]): Promise<number> {
	const max = Number(invocation.value('max') ?? 10_000);
	if (!Number.isInteger(max) || max < 1) throw new CommandFailure('`--max` takes a number from 1.');
	const [one, other] = invocation.args as readonly [string, string];
	if (one === '-' && other === '-') throw new CommandFailure('Standard input can be read only once.');
	const { compileConfiguration } = await import('../configuration/compilation.ts');
	const compiled = async (source: ConfigurationSource) => {
		const input = await readConfiguration(source);
		const { plan, locate, files } = compileConfiguration(input);
		return { name: input.name, plan, locate, files: input.path === undefined ? files : [...files, input.path] };
	};
	const fileOf = (given: string) => requiredSource({ args: [given], value: () => undefined });
	const before = await compiled(fileOf(one));
	const after = await compiled(fileOf(other));
	const { diffConfigurations } = await import('../../compiler/diff/configuration-diff.ts');
	const { diffAsJson, isSame, renderDiff, renderDiffAsMarkdown } = await import('../../compiler/diff/render-diff.ts');
	const { dryRunEnvironment } = await import('../../runtime/compile/dry-run-environment.ts');
	const result = await diffConfigurations(before, after, dryRunEnvironment(process.cwd()), max);
	if (format === 'json') print(`${JSON.stringify(diffAsJson(result), undefined, 2)}\n`);
	else print((format === 'markdown' ? renderDiffAsMarkdown : renderDiff)(result, before.name, after.name));
	return isSame(result) ? EXIT_STATUS.ok : EXIT_STATUS.failed;
}
