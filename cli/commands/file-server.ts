/** `svc file-server`. */
import { statSync } from 'node:fs';
import path from 'node:path';
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
		{ name: 'domain', short: 'd', value: 'DOMAIN', summary: 'Serve this domain over HTTPS', later: true },
		{ name: 'file-limit', value: 'FILE_LIMIT', summary: 'Most files in a listing', later: true },
		{ name: 'templates', summary: 'Render .html files as templates', later: true },
	],
	run({ flag, value, verbose }) {
		const site = listenSite(value('listen') ?? ':80');
		const root = path.resolve(value('root') ?? '.');
		if (!statSync(root, { throwIfNoEntry: false })?.isDirectory()) {
			throw new CommandFailure(`${quoted(value('root') ?? '.')} is not a folder.`);
		}
		const logs = flag('access-log') ? { logs: [{}] } : {};
		return serveDocument({ sites: [{ ...site, ...logs, pipeline: [{ handler: 'files', root }] }] }, verbose);
	},
};
