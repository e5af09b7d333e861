/**
 * The command `svc manpage`: writes the manual pages, one each for every command, `svc` itself, the configuration language and
 * every guide.
 */
import { statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { quoteWord } from '../command/arguments.ts';
import { type Command, CommandFailure, EXIT_STATUS } from '../command/command.ts';
import { print } from '../command/terminal.ts';
import { version } from '../command/version.ts';
import { COMMANDS } from './index.ts';

export const manpage: Command = {
	name: 'manpage',
	summary: 'Write the manual pages to a folder',
	details: [
		'Writes svc.1, a page for each command, such as svc-run.1, and svc-configfile.5, which documents the configuration language with every directive, matcher and global option, and a page for each guide, such as svc-https.7. The folder must exist; existing pages are replaced.',
	],
	options: [
		{
			name: 'directory',
			short: 'o',
			valueName: 'DIR',
			offers: 'folder',
			required: true,
			summary: 'Folder to write to',
		},
	],
	async run({ value }) {
		const folder = value('directory')!;
		if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) {
			throw new CommandFailure(`${quoteWord(folder)} is not an existing folder; create it first.`);
		}
		const [{ commandPage, overviewPage }, { configfilePage }, { guidePage }, { allGuides }, { renderPage }, commands] =
			await Promise.all([
				import('../manpages/command-page.ts'),
				import('../manpages/configfile-page.ts'),
				import('../manpages/guide-page.ts'),
				import('../manual/guide.ts'),
				import('../manpages/roff.ts'),
				Promise.all(COMMANDS.map(entry => entry.load())),
			]);
		const pages = [
			overviewPage(commands),
			...commands.map(commandPage),
			configfilePage(),
			...allGuides().map(guidePage),
		];
		for (const page of pages) {
			const file = path.join(folder, `${page.name}.${page.section}`);
			try {
				writeFileSync(file, renderPage(page, version()));
			} catch (error) {
				throw new CommandFailure(`${quoteWord(file)} cannot be written: ${(error as NodeJS.ErrnoException).code}.`);
			}
		}
		print(`${pages.length} manual pages written to ${folder}.\n`);
		return EXIT_STATUS.ok;
	},
};
