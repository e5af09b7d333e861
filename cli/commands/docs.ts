/** The command `svc docs`: serves the documentation, or writes it to a folder. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { quoteWord } from '../command/arguments.ts';
import { type Command, CommandFailure, EXIT_STATUS } from '../command/command.ts';
import { print } from '../command/terminal.ts';
import { version } from '../command/version.ts';
import { COMMANDS } from './index.ts';

export const docs: Command = {
	name: 'docs',
	summary: 'Serve the documentation, or write it to a folder',
	details: [
		'The site has all guides and the reference of this build, with a search. It is generated when the command runs, needs no network, and loads nothing from elsewhere.',
	],
	options: [
		{
			name: 'listen',
			short: 'l',
			valueName: 'LISTEN',
			summary: 'Address to listen on',
			default: 'a free port on 127.0.0.1, which is printed',
		},
		{
			name: 'output',
			short: 'o',
			valueName: 'DIR',
			offers: 'folder',
			summary: 'Folder to write the site to, instead of serving it; it is created if necessary',
		},
	],
	async run({ value, verbose }) {
		const outputFolder = value('output');
		if (outputFolder !== undefined) {
			if (value('listen') !== undefined)
				throw new CommandFailure(`${quoteWord('--listen')} and ${quoteWord('--output')} cannot be combined.`);
			const count = await writeSite(outputFolder);
			print(`${count} files written to ${outputFolder}.\n`);
			return EXIT_STATUS.ok;
		}
		const { siteListeningAt, serveDocument } = await import('../serving/quick-server.ts');
		const site = siteListeningAt(value('listen') ?? '127.0.0.1:0');
		const folder = mkdtempSync(path.join(tmpdir(), 'svc-docs-'));
		process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
		await writeSite(folder);
		const { CONTENT_SECURITY_POLICY } = await import('../documentation/layout.ts');
		const headerFields = [
			{ name: 'Content-Security-Policy', value: `${CONTENT_SECURITY_POLICY}; frame-ancestors 'none'` },
			{ name: 'X-Content-Type-Options', value: 'nosniff' },
		];
		const pipeline = [
			{ handler: 'edit_headers', response: { set: headerFields } },
			{ handler: 'compress' },
			{ handler: 'files', root: folder },
		];
		return serveDocument({ sites: [{ ...site, pipeline }] }, verbose);
	},
};

/** Writes the documentation to a folder. Returns the number of files written. @throws {@link CommandFailure} */
async function writeSite(folder: string): Promise<number> {
	const [{ documentationSite }, commands] = await Promise.all([
		import('../documentation/documentation-site.ts'),
		Promise.all(COMMANDS.map(entry => entry.load())),
	]);
	const filesByPath = await documentationSite(version(), commands);
	for (const [name, text] of filesByPath) {
		const file = path.join(folder, name);
		try {
			mkdirSync(path.dirname(file), { recursive: true });
			writeFileSync(file, text);
		} catch (error) {
			throw new CommandFailure(`${quoteWord(file)} cannot be written: ${(error as NodeJS.ErrnoException).code}.`);
		}
	}
	return filesByPath.size;
}
