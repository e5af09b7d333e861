/** The command `svc file-server`: serves one site, which its options describe, without a configuration file. */
import { statSync } from 'node:fs';
import path from 'node:path';
import type { Site, Step } from '../../compiler/document/document.ts';
import { isSiteAddress, parseSiteAddress } from '../../compiler/document/site-address.ts';
import { quoteWord } from '../command/arguments.ts';
import { type Command, CommandFailure } from '../command/command.ts';
import { serveDocument, siteListeningAt } from '../serving/quick-server.ts';

export const fileServer: Command = {
	name: 'file-server',
	summary: 'Serve the files of a folder',
	options: [
		{ name: 'listen', valueName: 'LISTEN', summary: 'Address to listen on', default: ':80' },
		{ name: 'root', valueName: 'ROOT', offers: 'folder', summary: 'Folder to serve', default: '.' },
		{ name: 'access-log', summary: 'Log each request' },
		{ name: 'no-compress', summary: 'Do not compress; by default, text is compressed for clients that accept it' },
		{ name: 'browse', short: 'b', summary: 'List folders without an index file' },
		{
			name: 'domain',
			short: 'd',
			valueName: 'DOMAIN',
			summary: 'Serve this domain over HTTPS; --listen is then a port',
		},
		{ name: 'file-limit', valueName: 'FILE_LIMIT', summary: 'Maximum number of files in a listing', default: '10000' },
		{ name: 'templates', summary: 'Render .html files as templates' },
	],
	run({ flag, value, verbose }) {
		const domain = value('domain');
		const listenOption = value('listen');
		const site = domain === undefined ? siteListeningAt(listenOption ?? ':80') : domainSite(domain, listenOption);
		const root = path.resolve(value('root') ?? '.');
		if (!statSync(root, { throwIfNoEntry: false })?.isDirectory()) {
			throw new CommandFailure(`${quoteWord(value('root') ?? '.')} is not a folder.`);
		}
		const logs = flag('access-log') ? { logs: [{}] } : {};
		const fileLimitText = value('file-limit');
		if (fileLimitText !== undefined && !/^[1-9]\d{0,5}$/.test(fileLimitText)) {
			throw new CommandFailure(`${quoteWord(fileLimitText)} is not a file limit; give a number from 1 to 999999.`);
		}
		const browse = flag('browse')
			? { browse: fileLimitText === undefined ? {} : { file_limit: Number(fileLimitText) } }
			: {};
		const pipeline: Step[] = [
			...(flag('no-compress') ? [] : [{ handler: 'compress' }]),
			...(flag('templates') ? [{ handler: 'render', types: ['text/html'], root }] : []),
			{ handler: 'files', root, ...browse },
		];
		return serveDocument({ sites: [{ ...site, ...logs, pipeline }] }, verbose);
	},
};

/**
 * Returns a site that serves a domain over HTTPS, on port 443 or the port that `--listen` gives. @throws {@link CommandFailure}
 */
function domainSite(domain: string, listenOption: string | undefined): Pick<Site, 'addresses'> {
	const port = listenOption === undefined ? '' : /^:?(\d{1,5})$/.exec(listenOption)?.[1];
	if (port === undefined) {
		throw new CommandFailure(`With --domain, --listen must be a port; ${quoteWord(listenOption!)} is not one.`);
	}
	const text = port === '' ? `https://${domain}` : `https://${domain}:${port}`;
	const address = parseSiteAddress(text);
	if (!isSiteAddress(address) || address.path !== '' || address.host === '') {
		throw new CommandFailure(`${quoteWord(domain)} is not a domain.`);
	}
	return { addresses: [text] };
}
