/**
 * The command `svc explain`: runs a request through the compiled configuration, without a network, and prints which steps handle
 * it.
 */
import type { DryRunRequest } from '../../compiler/dry-run/dry-run-request.ts';
import { quoteWord } from '../command/arguments.ts';
import { type Command, CommandFailure, EXIT_STATUS, type Invocation } from '../command/command.ts';
import { print, printError } from '../command/terminal.ts';
import {
	ADAPTER_OPTION,
	CONFIG_OPTION,
	LANGUAGE_RULE,
	PATH_ARGUMENT,
	readConfiguration,
	requiredSource,
} from '../configuration/configuration.ts';

export const explain: Command = {
	name: 'explain',
	summary: 'Show which site, matchers and handlers a request runs through',
	details: [
		'The request runs through the same code that would serve it, without a network: no port is opened, nothing is sent, and every upstream is assumed to answer 200 with an empty body. Prints the site and why it was chosen, each matcher and its result, each handler and its place in the configuration, what rewrites changed, and the response or the upstream.',
		'The exit status says whether the request could be explained, not how it would be answered.',
		LANGUAGE_RULE,
	],
	args: [
		{ name: 'METHOD', required: true, summary: 'Method of the request, such as GET' },
		{ name: 'URL', required: true, summary: 'Full URL, such as http://example.com/path' },
		PATH_ARGUMENT,
	],
	options: [
		CONFIG_OPTION,
		ADAPTER_OPTION,
		{ name: 'header', short: 'H', valueName: 'NAME: VALUE', repeatable: true, summary: 'Request header' },
		{ name: 'data', short: 'd', valueName: 'TEXT', summary: 'Request body' },
		{ name: 'from', valueName: 'IP', summary: 'Client address', default: '127.0.0.1' },
		{ name: 'at', valueName: 'TIME', summary: 'Time of the request, such as 2026-01-31T12:00:00Z', default: 'now' },
		{ name: 'protocol', valueName: 'VERSION', summary: 'Version of HTTP: h1, h2 or h3', default: 'h1' },
		{ name: 'json', summary: 'Print JSON' },
	],
	async run(invocation) {
		const source = requiredSource({ args: invocation.args.slice(2), value: invocation.value });
		const request = await requestOf(invocation);
		const input = await readConfiguration(source);
		const { compileConfiguration } = await import('../configuration/compilation.ts');
		const { Explainer } = await import('../../compiler/explain/explanation.ts');
		const { dryRunEnvironment } = await import('../../runtime/compile/dry-run-environment.ts');
		const { plan, locate, warnings } = compileConfiguration(input);
		if (warnings !== '') printError(`${warnings}\n`);
		const outcome = await new Explainer({ plan, locate }, dryRunEnvironment(process.cwd())).explain(request);
		if (!outcome) {
			const { listenersText } = await import('../../compiler/dry-run/listener-choice.ts');
			const sentence = `No listener matches ${quoteWord(request.url.text)}: ${quoteWord(input.name)} listens on ${listenersText(plan)}.`;
			throw new CommandFailure(sentence);
		}
		outcome.result.response?.close();
		if (invocation.flag('json')) print(`${JSON.stringify(outcome.explanation, undefined, 2)}\n`);
		else {
			const { renderExplanation } = await import('../../compiler/explain/render-explanation.ts');
			print(renderExplanation(outcome.explanation));
		}
		return EXIT_STATUS.ok;
	},
};

/** Returns the request that the command line describes. @throws {@link CommandFailure} if no client could send it */
async function requestOf(invocation: Invocation): Promise<DryRunRequest> {
	const {
		canonicalClientAddress,
		parseClockTime,
		fieldMistake,
		isRequestUrl,
		methodMistake,
		parseRequestUrl,
		parseRequestProtocol,
	} = await import('../../compiler/dry-run/dry-run-request.ts');
	const [method, urlText] = invocation.args as readonly [string, string];
	const refuse = ({ message, hint }: { message: string; hint?: string }): never => {
		throw new CommandFailure(hint === undefined ? message : `${message} ${hint}`);
	};
	const mistake = methodMistake(method);
	if (mistake) refuse(mistake);
	const url = parseRequestUrl(urlText);
	if (!isRequestUrl(url)) return refuse(url);
	const headers = invocation.values('header').map((text): [string, string] => {
		const colon = text.indexOf(':');
		if (colon < 1) {
			refuse({ message: `${quoteWord(text)} is not a header field.`, hint: "Write it as 'Name: value'." });
		}
		const name = text.slice(0, colon);
		const value = text.slice(colon + 1).trim();
		const fieldProblem = fieldMistake(name, value);
		if (fieldProblem) refuse(fieldProblem);
		return [name, value];
	});
	const clientText = invocation.value('from');
	const address = clientText === undefined ? undefined : canonicalClientAddress(clientText);
	if (clientText !== undefined && address === undefined)
		refuse({ message: `${quoteWord(clientText)} is not an IP address.` });
	const timeText = invocation.value('at');
	const time = timeText === undefined ? undefined : parseClockTime(timeText);
	if (timeText !== undefined && time === undefined) {
		refuse({
			message: `${quoteWord(timeText)} is not a time.`,
			hint: 'Write it as 2026-01-31T12:00:00Z, or as a date such as 2026-01-31.',
		});
	}
	const protocol = parseRequestProtocol(invocation.value('protocol') ?? 'h1', url.scheme);
	if (typeof protocol !== 'string') return refuse(protocol);
	return { method, url, headers, body: invocation.value('data'), from: address, at: time, protocol };
}
