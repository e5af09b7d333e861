/** `svc file-server`. */
import { statSync } from 'node:fs';
import path from 'node:path';
import type { Site } from '../../compiler/document/document.ts';
import { isSiteAddress, parseSiteAddress } from '../../compiler/document/site-address.ts';
import { quoted } from '../arguments.ts';
import { type Command, CommandFailure } from '../command.ts';
import { listenSite, serveDocument } from '../quick-server.ts';

/** Serves the files of a folder. */
export const fileServer: Command = {
	name: 'file-server',
	summary: 'Serve the files of a folder',
	options: [
		{ name: 'listen', value: 'LISTEN', summary: 'Address to listen on', default: ':80' },
		{ name: 'root', value: 'ROOT', offers: 'folder', summary: 'Folder to serve', default: '.' },
		{ name: 'access-log', summary: 'Write a line for each request' },
		{ name: 'no-compress', summary: 'Send files as they are; this build never compresses' },
		{ name: 'browse', short: 'b', summary: 'List folders', later: true },
		{ name: 'domain', short: 'd', value: 'DOMAIN', summary: 'Serve this domain over HTTPS; --listen is then a port' },
		{ name: 'file-limit', value: 'FILE_LIMIT', summary: 'Most files in a listing', later: true },
		{ name: 'templates', summary: 'Render .html files as templates', later: true },
	],
	run({ flag, value, verbose }) {
		const domain = value('domain');
		const listen = value('listen');
		const site = domain === undefined ? listenSite(listen ?? ':80') : domainSite(domain, listen);
		const root = path.resolve(value('root') ?? '.');
		if (!statSync(root, { throwIfNoEntry: false })?.isDirectory()) {
			throw new CommandFailure(`${quoted(value('root') ?? '.')} is not a folder.`);
		}
		const logs = flag('access-log') ? { logs: [{}] } : {};
		return serveDocument({ sites: [{ ...site, ...logs, pipeline: [{ handler: 'files', root }] }] }, verbose);
	},
};

/** A domain over HTTPS, on its port or the one to listen on. Throws {@link CommandFailure}. */
function domainSite(domain: string, listen: string | undefined): Pick<Site, 'addresses'> {
	const port = listen === undefined ? '' : /^:?(\d{1,5})$/.exec(listen)?.[1];
	if (port === undefined) {
		throw new CommandFailure(`--listen must be a port when a domain is served; ${quoted(listen!)} is none.`);
	}
	const text = port === '' ? `https://${domain}` : `https://${domain}:${port}`;
	const address = parseSiteAddress(text);
	if (!isSiteAddress(address) || address.path !== '' || address.host === '') {
		throw new CommandFailure(`${quoted(domain)} is not a domain.`);
	}
	return { addresses: [text] };
}
