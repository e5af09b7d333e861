/** The published OpenAPI description of the Admin API is valid and complete, and matches a running server. */

import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { Validator } from '@seriousme/openapi-schema-validator';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { ENDPOINTS } from '../../admin/endpoints.ts';
import { describeApi } from '../../admin/openapi.ts';
import { freePorts, type ServerProcess, serve, temporaryFolder } from '../harness.ts';

// biome-ignore lint/suspicious/noExplicitAny: a tree of JSON
const description = describeApi(ENDPOINTS) as any;

const published = suite('OpenAPI description');

published('is valid OpenAPI', async () => {
	const result = await new Validator().validate(structuredClone(description));
	assert.ok(result.valid, JSON.stringify(result.errors));
});

published('lists every endpoint and method, with a summary and every error status', () => {
	for (const endpoint of ENDPOINTS) {
		for (const place of Object.keys(endpoint.describedPaths ?? { [endpoint.path]: {} })) {
			for (const method of Object.keys(endpoint.operationsByMethod)) {
				const operation = description.paths[place]?.[method.toLowerCase()];
				assert.ok(operation?.summary.endsWith('.'), `${method} ${place}`);
				assert.ok(operation.responses['401'] && operation.responses['403'], `${method} ${place}`);
			}
		}
	}
});

const live = suite('responses of a running server');
let server: ServerProcess | undefined;
let base = '';
let text = '';

live.before(async () => {
	const folder = temporaryFolder();
	const file = path.join(folder, 'Configfile');
	const [port, admin] = (await freePorts(2)) as [number, number];
	text = `{\n\tadmin 127.0.0.1:${admin}\n\tthreads 1\n\tmetrics\n}\nhttp://127.0.0.1:${port} {\n\treverse_proxy 127.0.0.1:${port}\n}\n`;
	writeFileSync(file, text);
	server = await serve([file], port, { env: { XDG_STATE_HOME: folder } });
	base = `http://127.0.0.1:${admin}`;
});
live.after(async () => {
	await server?.stop();
});

const JSON_BODY = { 'Content-Type': 'application/json' };
const TEXT_BODY = { 'Content-Type': 'text/configfile' };

live('match the description', async () => {
	const ajv = new Ajv2020({ strict: false });
	ajv.addSchema({ $id: 'api', components: description.components });
	const seen = new Set<string>();
	for (const [line, place, headers, body] of [
		['GET /live', '/live'],
		['GET /ready', '/ready'],
		['GET /metrics', '/metrics'],
		['GET /metrics', '/metrics', { Accept: 'application/openmetrics-text; version=1.0.0' }],
		['GET /openapi.json', '/openapi.json'],
		['GET /reverse_proxy/upstreams', '/reverse_proxy/upstreams'],
		['GET /cache', '/cache'],
		['GET /cluster', '/cluster'],
		['GET /rollout', '/rollout'],
		['POST /cache/purge', '/cache/purge', JSON_BODY, '{"host":"a.example","path":"/x"}'],
		['POST /cache/purge', '/cache/purge', JSON_BODY, '[]'],
		['GET /config/', '/config/'],
		['GET /config/nothing/here', '/config/{path}'],
		['GET /config/%ff', '/config/{path}'],
		['GET /id/x', '/id/{id}'],
		['PATCH /config/settings/metrics', '/config/{path}', JSON_BODY, '{}'],
		['PATCH /config/settings/threads', '/config/{path}', JSON_BODY, '7'],
		['PATCH /config/settings/none', '/config/{path}', JSON_BODY, '7'],
		['PATCH /config/settings/threads', '/config/{path}', JSON_BODY, '"x"'],
		['PATCH /config/settings/threads', '/config/{path}', JSON_BODY, 'x'],
		['PATCH /config/settings/threads', '/config/{path}', { 'Content-Type': 'text/plain' }, '1'],
		['PUT /config/settings/threads', '/config/{path}', JSON_BODY, '1'],
		['PUT /config/settings/debug', '/config/{path}', JSON_BODY, 'true'],
		['POST /config/sites/0/pipeline', '/config/{path}', JSON_BODY, '{"handler":"respond"}'],
		['POST /config/settings/debug', '/config/{path}', { ...JSON_BODY, 'If-Match': '"x"' }, 'true'],
		['DELETE /config/settings/debug', '/config/{path}', {}],
		['DELETE /id/x', '/id/{id}', {}],
		['POST /adapt', '/adapt', TEXT_BODY, ':80'],
		['POST /adapt', '/adapt', TEXT_BODY, 'respnd'],
		['POST /load?dry_run', '/load', TEXT_BODY, 'text'],
		['POST /load?dry_run', '/load', TEXT_BODY, '{'],
		['POST /load?dry_run', '/load', TEXT_BODY, ':1234'],
		['POST /load?confirm=never', '/load', TEXT_BODY, 'text'],
		['POST /load?confirm=1m', '/load', TEXT_BODY, 'text'],
		['POST /load', '/load', TEXT_BODY, 'text'],
		['POST /load/revert', '/load/revert'],
		['POST /load/confirm', '/load/confirm'],
		['POST /load', '/load', JSON_BODY, '{"apps":{}}'],
		['POST /upgrade', '/upgrade', { 'Content-Type': 'text/plain' }],
		['POST /upgrade', '/upgrade', JSON_BODY, '{"binary":"relative"}'],
		['POST /stop', '/stop', { 'Content-Type': 'text/plain' }],
		['POST /stop', '/stop'],
	] as [string, string, Record<string, string>?, string?][]) {
		const [method, target] = line.split(' ') as [string, string];
		const response = await fetch(base + target, {
			method,
			...(headers && { headers }),
			...(body !== undefined && { body: body === 'text' ? text.replace('metrics', 'debug\n\tmetrics') : body }),
		});
		const operation = description.paths[place][method.toLowerCase()];
		const told = operation.responses[response.status];
		const answer = await response.text();
		assert.ok(told, `${line}: ${response.status} is missing from the description\n${answer}`);
		const type = response.headers.get('content-type')!.split(';')[0]!;
		const schema = told.content[type]?.schema;
		assert.ok(schema, `${line}: ${type} is missing from the description`);
		const value = type === 'application/json' ? JSON.parse(answer) : answer;
		const absolute = JSON.parse(JSON.stringify(schema).replaceAll('"#/components', '"api#/components'));
		assert.ok(ajv.validate(absolute, value), `${line}: ${ajv.errorsText()}\n${answer}`);
		seen.add(`${method.toLowerCase()} ${place} ${response.status}`);
	}
	for (const [place, item] of Object.entries<object>(description.paths)) {
		for (const method of Object.keys(item).filter(key => key !== 'parameters' && !place.includes('{id}/'))) {
			if (place === '/config/' || place === '/id/{id}') continue;
			assert.ok(
				[...seen].some(one => one.startsWith(`${method} ${place} `)),
				`${method} ${place} was not tested: add a request for it to this test`,
			);
		}
	}
});

published.run();
live.run();
