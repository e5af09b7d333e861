/** The command `svc import`: translates another server's configuration to a Configfile. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { quoteWord } from '../command/arguments.ts';
import { type Command, CommandFailure, EXIT_STATUS } from '../command/command.ts';
import { print, printError } from '../command/terminal.ts';
import { formatOfName } from '../configuration/configuration.ts';

/** nginx directives that may deny requests. If one could not be translated, the site may admit more requests than before. */
const GUARD_DIRECTIVES: ReadonlySet<string> = new Set([
	...['auth_jwt', 'auth_request', 'geo', 'if', 'internal', 'limit_conn', 'limit_except', 'limit_req', 'location'],
	...['map', 'rewrite', 'secure_link', 'ssl_verify_client', 'valid_referers'],
]);

/** A line that begins a section of a haproxy.cfg. nginx knows none of these words. */
const HAPROXY_SECTION = /^(?:global|defaults|(?:frontend|backend|listen)\s+\S+)\s*$/m;

export const importCommand: Command = {
	name: 'import',
	summary: "Translate another server's configuration to a Configfile",
	details: [
		'Reads an nginx.conf with the files that it includes, and prints a Configfile with tests of its locations. A directive without a counterpart becomes a comment that begins with `nginx:` and ends with the reason; standard error says how many there are. It also names those among them that may have kept requests out, such as an `if`: look at each of these before the result is served. In place of `allow`, `deny` and `auth_basic` that cannot be translated, every request is denied.',
		'The exit status is 1, and nothing is printed, if the file has mistakes. Standard error also says if the result does not pass `svc validate --lint --strict` yet: for example, because it names a certificate that is not on this machine.',
		'With --format json, prints one object: the Configfile as `text`, `translated`, and `kept` with the directive, file, line and reason of each comment.',
	],
	args: [{ name: 'FILE', required: true, offers: 'file', summary: 'The file to translate' }],
	options: [
		{ name: 'from', valueName: 'SERVER', offers: ['nginx'], summary: "The server's name", default: 'nginx' },
		{
			name: 'output',
			short: 'o',
			valueName: 'FILE',
			offers: 'file',
			summary: 'New file for the result, instead of standard output',
		},
		{ name: 'format', valueName: 'FORMAT', offers: ['text', 'json'], summary: 'What to print', default: 'text' },
	],
	async run({ args, value }) {
		const server = value('from') ?? 'nginx';
		if (server !== 'nginx') throw new CommandFailure(`${quoteWord(server)} cannot be imported; give nginx.`);
		const format = value('format') ?? 'text';
		if (format !== 'text' && format !== 'json') {
			throw new CommandFailure(`${quoteWord(format)} is not a format; give text or json.`);
		}
		const inputFile = args[0]!;
		const outputPath = value('output');
		if (outputPath !== undefined && existsSync(outputPath)) {
			throw new CommandFailure(`${quoteWord(outputPath)} exists already; give the name of a new file.`);
		}
		let nginxText: string;
		try {
			nginxText = readFileSync(inputFile, 'utf8');
		} catch (error) {
			throw new CommandFailure(`${quoteWord(inputFile)} cannot be read: ${(error as NodeJS.ErrnoException).code}.`);
		}
		const refusal = foreignFileMessage(inputFile, nginxText);
		if (refusal !== undefined) throw new CommandFailure(refusal);
		const { importNginx } = await import('../../compiler/import/nginx/import-nginx.ts');
		const { diskReader } = await import('../../runtime/compile/disk-reader.ts');
		const { renderDiagnostics } = await import('../configuration/compilation.ts');
		const folder = path.dirname(path.resolve(inputFile));
		const importResult = importNginx({ text: nginxText, name: inputFile, folder }, diskReader(process.cwd()));
		const { diagnostics, translated: translatedCount, kept: keptDirectives } = importResult;
		if (diagnostics.length > 0) {
			const countText = `${diagnostics.length} mistake${diagnostics.length === 1 ? '' : 's'}`;
			throw new CommandFailure(`${quoteWord(inputFile)} has ${countText}; nothing was translated.`, {
				preamble: `${renderDiagnostics(diagnostics)}\n`,
			});
		}
		const { formatText } = await import('../../compiler/syntax/format.ts');
		const configText = formatText(importResult.text);
		const outputText =
			format === 'json'
				? `${JSON.stringify({ translated: translatedCount, kept: keptDirectives, text: configText }, undefined, 2)}\n`
				: configText;
		if (outputPath === undefined) print(outputText);
		else {
			try {
				writeFileSync(outputPath, outputText, { flag: 'wx' });
			} catch (error) {
				throw new CommandFailure(
					`${quoteWord(outputPath)} cannot be written: ${(error as NodeJS.ErrnoException).code}.`,
				);
			}
		}
		const commentsText = `${keptDirectives.length} kept as comment${keptDirectives.length === 1 ? '' : 's'}`;
		printError(`${translatedCount} directive${translatedCount === 1 ? '' : 's'} translated, ${commentsText}.\n`);
		const guards = keptDirectives.filter(({ directive }) => GUARD_DIRECTIVES.has(directive.split(' ', 1)[0]!));
		if (guards.length > 0) {
			const places = guards.map(({ directive, file, line }) => `  ${file}:${line} ${directive}\n`).join('');
			printError(`These comments may have kept requests out, and no longer do:\n${places}`);
		}
		const { validateConfiguration } = await import('../configuration/validation.ts');
		const input = {
			format: 'configfile',
			text: configText,
			name: 'Configfile',
			path: path.join(folder, 'Configfile'),
		} as const;
		const { valid, diagnostics: findings } = await validateConfiguration(input, { lint: true, strict: true });
		if (!valid)
			printError(
				`It does not pass \`svc validate --lint --strict\` yet:\n\n${renderDiagnostics(findings.filter(({ severity }) => severity !== 'note'))}`,
			);
		return EXIT_STATUS.ok;
	},
};

/** Returns why a file that is clearly not an nginx.conf is refused, and what to do instead; undefined if it may be an nginx.conf. */
function foreignFileMessage(file: string, text: string): string | undefined {
	if (formatOfName(file) === 'compatfile') {
		return `${quoteWord(file)} is a Caddyfile or Compatfile, which needs no import: ${quoteWord('svc run')} serves it as it is, and ${quoteWord('svc adapt --to configfile')} prints it as a Configfile.`;
	}
	if (HAPROXY_SECTION.test(text) && !text.includes(';')) {
		return `${quoteWord(file)} is an HAProxy configuration, which cannot be imported; ${quoteWord('svc help from-haproxy')} lists the equivalents of its keywords.`;
	}
	return undefined;
}
