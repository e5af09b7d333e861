/** The command `svc respond`: serves one site, which its options describe, without a configuration file. */
import { quoteWord } from '../command/arguments.ts';
import { type Command, CommandFailure } from '../command/command.ts';
import { parseHeaderField, serveDocument, siteListeningAt, toHeaderEdits } from '../serving/quick-server.ts';

export const respond: Command = {
	name: 'respond',
	summary: 'Serve one fixed response',
	options: [
		{ name: 'status', short: 's', valueName: 'STATUS', summary: 'Status code', default: '200' },
		{ name: 'header', short: 'H', valueName: 'HEADERS', repeatable: true, summary: 'Response header, `Field: value`' },
		{ name: 'body', short: 'b', valueName: 'BODY', summary: 'Response body', default: 'empty' },
		{
			name: 'listen',
			short: 'l',
			valueName: 'LISTEN',
			summary: 'Address to listen on',
			default: 'a free port on 127.0.0.1, which is printed',
		},
	],
	run({ value, values, verbose }) {
		const site = siteListeningAt(value('listen') ?? '127.0.0.1:0');
		const fields = values('header').map(parseHeaderField);
		const body = value('body') ?? '';
		const respondStep = {
			handler: 'respond',
			status: statusCode(value('status') ?? '200'),
			...(body === '' ? {} : { body }),
		};
		const headerSteps = fields.length === 0 ? [] : [{ handler: 'edit_headers', response: toHeaderEdits(fields) }];
		return serveDocument({ sites: [{ ...site, pipeline: [...headerSteps, respondStep] }] }, verbose);
	},
};

function statusCode(text: string): number {
	const status = Number(text);
	if (/^\d{3}$/.test(text) && status >= 200 && status <= 599) return status;
	throw new CommandFailure(`${quoteWord(text)} is not a status code; give a number from 200 to 599.`);
}
