/**
 * The shipped manifests for Kubernetes and Docker Compose: the files, ports and options that they refer to exist, and the health
 * probes get answers from the configurations.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { parse, parseAllDocuments } from 'yaml';
import { IMAGE_USER_ID } from '../../../cli/packaging/release/oci-image.ts';
import { freePorts, ROOT, runCommand, serve, temporaryFolder } from '../../harness.ts';

// biome-ignore lint/suspicious/noExplicitAny: the tests look at whatever the files contain.
type Fields = { readonly [name: string]: any };

const folder = path.join(ROOT, 'cli/packaging/container');
const read = (name: string): string => readFileSync(path.join(folder, name), 'utf8');

/** Converts a duration such as `10s` to seconds. */
const seconds = (text: string): number => Number(/^(\d+)s$/.exec(text)![1]);

/** Returns the seconds of an option in a configuration; 0 if it is missing. */
const optionSeconds = (configuration: string, name: string): number =>
	Number(new RegExp(`^\\t${name} (\\d+)s$`, 'm').exec(configuration)?.[1] ?? 0);

/**
 * Serves a configuration as the container does, but on free ports, and requests the given targets. A target names the port that
 * the configuration has in the container. Returns the answers.
 */
async function serveAndRequest(
	configuration: string,
	words: readonly string[],
	ports: readonly number[],
	targets: readonly (readonly [port: number, path: string])[],
): Promise<{ status: number; body: string }[]> {
	const free = await freePorts(ports.length);
	const mapped = (port: number): number => free[ports.indexOf(port)]!;
	let text = configuration;
	for (const port of ports) text = text.replaceAll(String(port), String(mapped(port)));
	const place = temporaryFolder();
	const file = path.join(place, 'Configfile');
	writeFileSync(file, text);
	assert.is(words[0], 'run');
	const args = words.slice(1).map(word => (word === '/etc/svc/Configfile' ? file : word));
	assert.ok(args.includes(file));
	const env = { SVC_TLS_STORE: path.join(place, 'store'), STATE_DIRECTORY: place };
	const server = await serve(args, mapped(targets[0]![0]), { cwd: place, env });
	try {
		return await Promise.all(
			targets.map(async ([port, target]) => {
				const response = await fetch(`http://127.0.0.1:${mapped(port)}${target}`);
				return { status: response.status, body: await response.text() };
			}),
		);
	} finally {
		await server.stop();
	}
}

/** Fails if `svc validate --lint` reports anything about a configuration. */
async function assertNoFindings(configuration: string): Promise<void> {
	const file = path.join(temporaryFolder(), 'Configfile');
	writeFileSync(file, configuration);
	const { status, stderr, stdout } = await runCommand(['validate', '--lint', '--strict', file]);
	assert.is(status, 0, stdout + stderr);
}

const containers = suite('manifests for containers');

containers('the pods of Kubernetes answer their probes, are stopped gracefully and have no privileges', async () => {
	const documents = parseAllDocuments(read('kubernetes.yaml')).map(document => {
		assert.equal(document.errors, []);
		return document.toJS() as Fields;
	});
	const of = (kind: string): Fields => documents.find(one => one.kind === kind)!;
	const { spec: pod, metadata } = of('Deployment').spec.template as Fields;
	const [container] = pod.containers as [Fields];
	const configuration = of('ConfigMap').data.Configfile as string;
	await assertNoFindings(configuration);

	const ports = new Map<string, number>(container.ports.map((one: Fields) => [one.name, one.containerPort]));
	const probes = ['startupProbe', 'readinessProbe', 'livenessProbe'].map(name => container[name].httpGet as Fields);
	const { annotations } = metadata;
	const [site, ...asked] = await serveAndRequest(
		configuration,
		container.args,
		[...ports.values()],
		[
			[ports.get(of('Service').spec.ports[0].targetPort)!, '/'],
			...probes.map(({ port, path: target }) => [ports.get(port)!, target] as const),
			[Number(annotations['prometheus.io/port']), annotations['prometheus.io/path']],
		],
	);
	assert.match(site!.body, /^Hello from /);
	assert.equal(
		asked.map(({ status }) => status),
		[200, 200, 200, 200],
	);
	assert.equal(
		asked.slice(0, 3).map(({ body }) => body),
		['{"ready":true}\n', '{"ready":true}\n', '{"live":true}\n'],
	);
	assert.match(asked[3]!.body, /^svc_ready 1$/m);

	const delay = optionSeconds(configuration, 'shutdown_delay');
	const { periodSeconds, failureThreshold, timeoutSeconds } = container.readinessProbe;
	assert.ok(delay >= failureThreshold * (periodSeconds + timeoutSeconds));
	assert.ok(pod.terminationGracePeriodSeconds > delay + optionSeconds(configuration, 'grace_period'));
	assert.is(pod.securityContext.runAsUser, IMAGE_USER_ID);
	assert.equal(container.securityContext, {
		allowPrivilegeEscalation: false,
		readOnlyRootFilesystem: true,
		capabilities: { drop: ['ALL'] },
	});
	const labels = of('Deployment').spec.selector.matchLabels;
	assert.equal(metadata.labels, labels);
	assert.equal(of('Service').spec.selector, labels);
	assert.equal(of('PodDisruptionBudget').spec.selector.matchLabels, labels);
	const volumes = pod.volumes.map(({ name }: Fields) => name);
	assert.equal(container.volumeMounts.map(({ name }: Fields) => name).sort(), volumes.sort());
	assert.is(pod.volumes.find((one: Fields) => one.configMap).configMap.name, of('ConfigMap').metadata.name);
});

containers(
	'the service of Docker Compose serves on its ports, is stopped gracefully and has no privileges',
	async () => {
		const { services, configs, volumes } = parse(read('docker-compose.yml')) as Fields;
		const { svc } = services;
		const configuration = configs[svc.configs[0].source].content as string;
		await assertNoFindings(configuration);
		assert.equal(svc.entrypoint, ['svc']);
		const published = new Set<number>(svc.ports.map((port: string) => Number(/:(\d+)(?:\/udp)?$/.exec(port)![1])));
		assert.equal([...published], [8080, 8443, 9090]);
		const [site, live, ready, metrics] = await serveAndRequest(
			configuration,
			svc.command,
			[...published],
			[
				[8080, '/'],
				[9090, '/live'],
				[9090, '/ready'],
				[9090, '/metrics'],
			],
		);
		assert.is(site!.body, 'Hello from a container.');
		assert.equal([live!.status, ready!.status, metrics!.status], [200, 200, 200]);
		assert.ok(seconds(svc.stop_grace_period) > optionSeconds(configuration, 'grace_period'));
		assert.is(svc.user, `${IMAGE_USER_ID}:${IMAGE_USER_ID}`);
		assert.is(svc.read_only, true);
		assert.equal(svc.cap_drop, ['ALL']);
		assert.ok(svc.volumes[0].startsWith(`${Object.keys(volumes)[0]}:`));
	},
);

containers.run();
