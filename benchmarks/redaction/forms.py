"""Credentials as their issuers document them, and the places where they turn up. Written before the rules were read.

A form is a template: `{kind:count}` becomes that many random characters. No complete credential is in this file; each run
generates its own.
"""

from __future__ import annotations

import base64
import json
import random
import re
import string
import uuid
from collections.abc import Callable, Sequence
from typing import NamedTuple

_ALPHABETS = {
    "alnum": string.ascii_letters + string.digits,
    "upper": string.ascii_uppercase + string.digits,
    "base32": string.ascii_uppercase + "234567",
    "lower": string.ascii_lowercase + string.digits,
    "hex": "0123456789abcdef",
    "digit": string.digits,
    "url": string.ascii_letters + string.digits + "-_",
    "b64": string.ascii_letters + string.digits + "+/",
    "word": string.ascii_lowercase,
    "letter": string.ascii_letters,
    "HEX": "0123456789ABCDEF",
    "dot": string.ascii_letters + string.digits + "-_.~",
    "password": string.ascii_letters + string.digits + "!#%+-.^_*",
    "django": string.ascii_lowercase + string.digits + "!@#$%^&*(-_=+)",
    "salt": string.ascii_letters + string.digits + "!@#$%^&*()-_ []~`+=,.;:/?|",
    "crypt": string.ascii_letters + string.digits + "./",
    "cr": "\r",
}


class Form(NamedTuple):
    """`variable`: the name under which the issuer's documentation has people put it. Forms without a telling shape are only
    ever shown with it, or in their `place`: where that documentation shows it. Of a template with «» only what is between them is
    secret."""

    issuer: str
    template: str
    variable: str
    has_shape: bool = True
    place: str = ""


FORMS = [
    Form("AWS access key id", "AKIA{base32:16}", "AWS_ACCESS_KEY_ID"),
    Form("AWS temporary access key id", "ASIA{base32:16}", "AWS_ACCESS_KEY_ID"),
    Form("AWS secret access key", "{b64:40}", "AWS_SECRET_ACCESS_KEY", has_shape=False),
    Form("GitHub personal access token", "ghp_{alnum:36}", "GITHUB_TOKEN"),
    Form("GitHub OAuth token", "gho_{alnum:36}", "GITHUB_TOKEN"),
    Form("GitHub user-to-server token", "ghu_{alnum:36}", "GH_TOKEN"),
    Form("GitHub server-to-server token", "ghs_{alnum:36}", "GITHUB_TOKEN"),
    Form("GitHub refresh token", "ghr_{alnum:76}", "GH_REFRESH_TOKEN"),
    Form("GitHub fine-grained token", "github_pat_{alnum:22}_{alnum:59}", "GH_TOKEN"),
    Form("GitLab personal access token", "glpat-{url:20}", "GITLAB_TOKEN"),
    Form("GitLab deploy token", "gldt-{url:20}", "CI_DEPLOY_PASSWORD"),
    Form("GitLab runner token", "glrt-{url:20}", "RUNNER_TOKEN"),
    Form("Stripe secret key, live", "sk_live_{alnum:24}", "STRIPE_SECRET_KEY"),
    Form("Stripe secret key, live, long", "sk_live_51{alnum:97}", "STRIPE_API_KEY"),
    Form("Stripe secret key, test", "sk_test_{alnum:24}", "STRIPE_SECRET_KEY"),
    Form("Stripe restricted key", "rk_live_{alnum:24}", "STRIPE_API_KEY"),
    Form("Slack bot token", "xoxb-{digit:12}-{digit:13}-{alnum:24}", "SLACK_BOT_TOKEN"),
    Form("Slack user token", "xoxp-{digit:12}-{digit:12}-{digit:12}-{hex:32}", "SLACK_USER_TOKEN"),
    Form("Slack app-level token", "xapp-1-A{upper:10}-{digit:13}-{hex:64}", "SLACK_APP_TOKEN"),
    Form("Slack incoming webhook", "https://hooks.slack.com/services/T{upper:8}/B{upper:8}/{alnum:24}", "SLACK_WEBHOOK_URL"),
    Form("Google API key", "AIza{url:35}", "GOOGLE_API_KEY"),
    Form("Google OAuth client secret", "GOCSPX-{url:28}", "GOOGLE_CLIENT_SECRET"),
    Form("OpenAI project key", "sk-proj-{url:74}T3BlbkFJ{url:74}", "OPENAI_API_KEY"),
    Form("OpenAI key, older", "sk-{alnum:20}T3BlbkFJ{alnum:20}", "OPENAI_API_KEY"),
    Form("Anthropic API key", "sk-ant-api03-{url:93}AA", "ANTHROPIC_API_KEY"),
    Form("Hugging Face token", "hf_{alnum:34}", "HF_TOKEN"),
    Form("npm token", "npm_{alnum:36}", "NPM_TOKEN"),
    Form("PyPI token", "pypi-AgEIcHlwaS5vcmc{url:160}", "TWINE_PASSWORD"),
    Form("RubyGems key", "rubygems_{hex:48}", "GEM_HOST_API_KEY"),
    Form("Docker Hub token", "dckr_pat_{url:27}", "DOCKER_TOKEN"),
    Form("DigitalOcean personal token", "dop_v1_{hex:64}", "DIGITALOCEAN_TOKEN"),
    Form("DigitalOcean OAuth token", "doo_v1_{hex:64}", "DIGITALOCEAN_TOKEN"),
    Form("HashiCorp Vault service token", "hvs.{url:95}", "VAULT_TOKEN"),
    Form("Terraform Cloud token", "{alnum:14}.atlasv1.{url:67}", "TFE_TOKEN"),
    Form("SendGrid key", "SG.{url:22}.{url:43}", "SENDGRID_API_KEY"),
    Form("Mailgun key", "key-{hex:32}", "MAILGUN_API_KEY"),
    Form("Mailchimp key", "{hex:32}-us12", "MAILCHIMP_API_KEY", has_shape=False),
    Form("Twilio API key", "SK{hex:32}", "TWILIO_API_KEY"),
    Form("Twilio auth token", "{hex:32}", "TWILIO_AUTH_TOKEN", has_shape=False),
    Form("Shopify admin token", "shpat_{hex:32}", "SHOPIFY_ACCESS_TOKEN"),
    Form("Square access token", "EAAA{url:60}", "SQUARE_ACCESS_TOKEN"),
    Form("Telegram bot token", "{digit:10}:AA{url:33}", "TELEGRAM_BOT_TOKEN"),
    Form("Discord bot token", "M{alnum:25}.G{alnum:5}.{url:38}", "DISCORD_TOKEN"),
    Form("Datadog API key", "{hex:32}", "DD_API_KEY", has_shape=False),
    Form("New Relic user key", "NRAK-{upper:27}", "NEW_RELIC_API_KEY"),
    Form("Grafana service account token", "glsa_{alnum:32}_{hex:8}", "GRAFANA_TOKEN"),
    Form("Databricks token", "dapi{hex:32}", "DATABRICKS_TOKEN"),
    Form("Linear key", "lin_api_{alnum:40}", "LINEAR_API_KEY"),
    Form("Notion token", "ntn_{digit:11}{alnum:35}", "NOTION_TOKEN"),
    Form("Postman key", "PMAK-{hex:24}-{hex:34}", "POSTMAN_API_KEY"),
    Form("Cloudflare API token", "{url:40}", "CLOUDFLARE_API_TOKEN", has_shape=False),
    Form("Heroku key", "{hex:8}-{hex:4}-{hex:4}-{hex:4}-{hex:12}", "HEROKU_API_KEY", has_shape=False),
    Form("Azure storage account key", "{b64:86}==", "AZURE_STORAGE_KEY", has_shape=False),
    Form("Age secret key", "AGE-SECRET-KEY-1{bech:58}", "SOPS_AGE_KEY"),
    Form("Fly.io token", "fo1_{url:43}", "FLY_API_TOKEN"),
    Form("Supabase access token", "sbp_{hex:40}", "SUPABASE_ACCESS_TOKEN"),
    Form("Perplexity key", "pplx-{alnum:48}", "PPLX_API_KEY"),
    Form("Groq key", "gsk_{alnum:52}", "GROQ_API_KEY"),
    Form("JSON Web Token", "{jwt:0}", "ID_TOKEN"),
    Form("PEM private key", "{pem:0}", "TLS_KEY"),
    Form("PostgreSQL URI password", "postgresql://app:{alnum:18}@db.internal:5432/orders", "DATABASE_URL"),
    Form("MongoDB URI password", "mongodb+srv://app:{alnum:20}@cluster0.internal/test", "MONGODB_URI"),
    Form("Redis URI password", "redis://:{alnum:24}@cache.internal:6379/0", "REDIS_URL"),
    Form("password in an environment", "{alnum:9}!{alnum:8}", "DB_PASSWORD", has_shape=False),
]
LATER_FORMS = [
    Form("OpenRouter key", "sk-or-v1-{hex:64}", "OPENROUTER_API_KEY"),
    Form("xAI key", "xai-{alnum:80}", "XAI_API_KEY"),
    Form("Replicate token", "r8_{alnum:37}", "REPLICATE_API_TOKEN"),
    Form("LangSmith key", "lsv2_pt_{hex:32}_{hex:10}", "LANGSMITH_API_KEY"),
    Form("Sentry organisation token", "sntrys_eyJ{alnum:120}_{b64:43}", "SENTRY_AUTH_TOKEN"),
    Form("Tailscale auth key", "tskey-auth-{alnum:16}-{alnum:32}", "TS_AUTHKEY"),
    Form("Doppler token", "dp.pt.{alnum:43}", "DOPPLER_TOKEN"),
    Form("PlanetScale token", "pscale_tkn_{url:43}", "PLANETSCALE_SERVICE_TOKEN"),
    Form("Pulumi token", "pul-{hex:40}", "PULUMI_ACCESS_TOKEN"),
    Form("Figma token", "figd_{url:40}", "FIGMA_TOKEN"),
    Form("Netlify token", "nfp_{alnum:36}", "NETLIFY_AUTH_TOKEN"),
    Form("Buildkite token", "bkua_{hex:40}", "BUILDKITE_API_TOKEN"),
    Form("Airtable token", "pat{alnum:14}.{hex:64}", "AIRTABLE_API_KEY"),
    Form("Atlassian token", "ATATT3xFfGF0{url:171}={upper:8}", "JIRA_API_TOKEN"),
    Form("Brevo key", "xkeysib-{hex:64}-{alnum:16}", "BREVO_API_KEY"),
    Form("Cloudflare origin key", "v1.0-{hex:24}-{hex:146}", "CF_ORIGIN_CA_KEY"),
    Form("Vercel token", "{alnum:24}", "VERCEL_TOKEN", has_shape=False),
    Form("Cohere key", "{alnum:40}", "CO_API_KEY", has_shape=False),
    Form("SonarQube token", "sqp_{hex:40}", "SONAR_TOKEN"),
    Form("Prefect key", "pnu_{alnum:36}", "PREFECT_API_KEY"),
]
"""Written after the rules, by somebody who did not look them up. F1 was 0.890 before its misses were seen; then one general rule
was added, and it is 0.928."""
_ALPHABETS["bech"] = "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L"

FRESH_FORMS = [
    Form(
        "Entra client secret",
        "{alnum:3}8Q~{dot:34}",
        "AZURE_CLIENT_SECRET",
        place="az login --service-principal -u {uuid:4} -p {value} --tenant {uuid:4}\n",
    ),
    Form(
        "Azure shared access signature",
        "sv=2024-11-04&ss=b&srt=co&sp=rl&se=2027-01-01T00:00:00Z&spr=https&sig=«{alnum:20}%2B{alnum:22}%3D»",
        "AZURE_STORAGE_SAS_TOKEN",
        place="azcopy copy 'https://backups.blob.core.windows.net/db/full.bak?{value}' .\n",
    ),
    Form(
        "Azure DevOps token",
        "{alnum:52}JQQJ99{alnum:18}AZDO{alnum:4}",
        "AZURE_DEVOPS_EXT_PAT",
        place="echo {value} | az devops login --organization https://dev.azure.com/contoso\n",
    ),
    Form(
        "Azure Service Bus connection string",
        "Endpoint=sb://shop.servicebus.windows.net/;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=«{b64:43}=»",
        "SERVICEBUS_CONNECTION_STRING",
        place='{{\n  "keyName": "RootManageSharedAccessKey",\n  "primaryConnectionString": {json}\n}}\n',
    ),
    Form(
        "Google service account file",
        "{pkcs8:0}",
        "GOOGLE_PRIVATE_KEY",
        place='{{\n  "type": "service_account",\n  "project_id": "shop",\n  "private_key": {json}\n}}\n',
    ),
    Form(
        "Alibaba Cloud access key secret",
        "{alnum:30}",
        "ALIBABA_CLOUD_ACCESS_KEY_SECRET",
        has_shape=False,
        place="aliyun configure set --mode AK --access-key-id LTAI5t{alnum:18} --access-key-secret {value}\n",
    ),
    Form(
        "Scaleway secret key",
        "{uuid:4}",
        "SCW_SECRET_KEY",
        has_shape=False,
        place="curl -H 'X-Auth-Token: {value}' https://api.scaleway.com/instance/v1/zones/fr-par-1/servers\n",
    ),
    Form(
        "Bitbucket app password",
        "ATBB{alnum:24}{HEX:8}",
        "BITBUCKET_APP_PASSWORD",
        place="Cloning into 'shop'...\n+ git fetch https://maria:{value}@bitbucket.org/contoso/shop.git\n",
    ),
    Form(
        "Gitea token",
        "{hex:40}",
        "GITEA_TOKEN",
        has_shape=False,
        place="curl -H 'Authorization: token {value}' https://git.example.com/api/v1/user\n",
    ),
    Form(
        "PayPal client secret",
        "E{url:79}",
        "PAYPAL_CLIENT_SECRET",
        has_shape=False,
        place="curl https://api-m.paypal.com/v1/oauth2/token -u 'A{url:79}:{value}' -d grant_type=client_credentials\n",
    ),
    Form(
        "Braintree access token",
        "access_token$production${lower:16}${hex:32}",
        "BRAINTREE_ACCESS_TOKEN",
        place='gateway = braintree.BraintreeGateway(access_token="{value}")\n',
    ),
    Form(
        "Stripe webhook signing secret",
        "whsec_{alnum:32}",
        "STRIPE_WEBHOOK_SECRET",
        place="$ stripe listen --forward-to localhost:4242\n> Ready! Your webhook signing secret is {value} (^C to quit)\n",
    ),
    Form(
        "Paddle key",
        "pdl_live_apikey_01{lower:24}_{alnum:22}_{alnum:3}",
        "PADDLE_API_KEY",
        place="curl https://api.paddle.com/products -H 'Authorization: Bearer {value}'\n",
    ),
    Form(
        "Postmark server token",
        "{uuid:4}",
        "POSTMARK_SERVER_TOKEN",
        has_shape=False,
        place="curl https://api.postmarkapp.com/email -X POST -H 'X-Postmark-Server-Token: {value}' -d @mail.json\n",
    ),
    Form("Resend key", "re_{alnum:8}_{alnum:24}", "RESEND_API_KEY", place="const resend = new Resend('{value}');\n"),
    Form(
        "Discord webhook",
        "https://discord.com/api/webhooks/{digit:19}/«{url:68}»",
        "DISCORD_WEBHOOK_URL",
        place="curl -H 'Content-Type: application/json' -d '{{\"content\": \"deployed\"}}' {value}\n",
    ),
    Form(
        "Teams incoming webhook",
        "https://contoso.webhook.office.com/webhookb2/{uuid:4}@{uuid:4}/IncomingWebhook/«{hex:32}»/{uuid:4}",
        "TEAMS_WEBHOOK_URL",
        place="2026-06-11T08:14:02Z ERROR notify: POST {value} returned 429, trying again in 30s\n",
    ),
    Form(
        "Matrix access token",
        "syt_Ym90_{letter:20}_{alnum:6}",
        "MATRIX_ACCESS_TOKEN",
        place='{{"user_id":"@bot:example.com","access_token":"{value}","device_id":"{upper:10}"}}\n',
    ),
    Form(
        "MySQL address with a password",
        "mysql://shop:«{alnum:7}%40{alnum:8}%23»@db.example.internal:3306/shop?ssl=true",
        "DATABASE_URL",
        place="sqlalchemy.exc.OperationalError: (2003, 'no route to host') while opening {value}\n",
    ),
    Form(
        "SQL Server connection string",
        "Server=tcp:shop.database.windows.net,1433;Database=shop;User ID=app;Password=«{alnum:6}#{alnum:10}»;Encrypt=True;",
        "ConnectionStrings__Default",
        place='{{\n  "ConnectionStrings": {{\n    "Default": {json}\n  }},\n  "AllowedHosts": "*"\n}}\n',
    ),
    Form(
        "Oracle JDBC address",
        "jdbc:oracle:thin:app/«{alnum:14}»@//ora.example.internal:1521/ORCLPDB1",
        "SPRING_DATASOURCE_URL",
        place="HikariPool-1 - Exception during pool initialization: jdbcUrl={value}, driver=oracle.jdbc.OracleDriver\n",
    ),
    Form(
        "Elasticsearch API key",
        "{b64:58}==",
        "ELASTIC_API_KEY",
        has_shape=False,
        place='curl -H "Authorization: ApiKey {value}" https://shop.es.eu-west-1.aws.found.io/_cat/indices\n',
    ),
    Form("crates.io token", "cio{alnum:32}", "CARGO_REGISTRY_TOKEN", place="$ cargo login {value}\n       Login saved\n"),
    Form(
        "Docker registry login",
        '{"auths":{"registry.example.com":{"auth":"«{basic:30}»"}}}',
        "DOCKER_AUTH_CONFIG",
        place="$ cat .docker/config.json\n{value}\n",
    ),
    Form(
        "Artifactory key",
        "AKCp{alnum:69}",
        "ARTIFACTORY_API_KEY",
        place="curl -H 'X-JFrog-Art-Api: {value}' -T app.tgz https://shop.jfrog.io/artifactory/generic/app.tgz\n",
    ),
    Form(
        "NuGet key",
        "oy2{lower:43}",
        "NUGET_API_KEY",
        place="dotnet nuget push Shop.1.2.0.nupkg --api-key {value} --source https://api.nuget.org/v3/index.json\n",
    ),
    Form("NVIDIA key", "nvapi-{url:64}", "NVIDIA_API_KEY", place="$ docker login nvcr.io -u '$oauthtoken' -p {value}\n"),
    Form(
        "ElevenLabs key",
        "sk_{hex:48}",
        "ELEVENLABS_API_KEY",
        place="curl https://api.elevenlabs.io/v1/voices -H 'xi-api-key: {value}'\n",
    ),
    Form("Pinecone key", "pcsk_{alnum:6}_{alnum:63}", "PINECONE_API_KEY", place='pc = Pinecone(api_key="{value}")\n'),
    Form(
        "Mistral key",
        "{alnum:32}",
        "MISTRAL_API_KEY",
        has_shape=False,
        place="curl https://api.mistral.ai/v1/models --header 'Authorization: Bearer {value}'\n",
    ),
    Form(
        "CircleCI token",
        "CCIPAT_{alnum:22}_{hex:40}",
        "CIRCLECI_CLI_TOKEN",
        place="curl https://circleci.com/api/v2/me -H 'Circle-Token: {value}'\n",
    ),
    Form(
        "Jenkins token",
        "11{hex:32}",
        "JENKINS_API_TOKEN",
        has_shape=False,
        place="curl -X POST https://ci.example.com/job/shop/build --user maria:{value}\n",
    ),
    Form(
        "kubeconfig client key",
        "{pem64:0}",
        "KUBE_CLIENT_KEY_DATA",
        place="users:\n- name: admin\n  user:\n    client-key-data: {value}\ncurrent-context: shop\n",
    ),
    Form(
        "Kubernetes service account token",
        "{account:0}",
        "KUBE_TOKEN",
        place="Data\n====\nca.crt:     1107 bytes\nnamespace:  7 bytes\ntoken:      {value}\n",
    ),
    Form(
        "OpenPGP private key",
        "{pgp:0}",
        "GPG_PRIVATE_KEY",
        place="$ gpg --armor --export-secret-keys ci@example.com\n{value}\n$ exit\n",
    ),
    Form(
        "WireGuard private key",
        "{b64:43}=",
        "WG_PRIVATE_KEY",
        has_shape=False,
        place="[Interface]\nAddress = 10.8.0.2/24\nPrivateKey = {value}\n\n[Peer]\nAllowedIPs = 10.8.0.0/24\n",
    ),
    Form(
        "HTTP basic authorization",
        "Authorization=Basic%20«{basic:40}»",
        "OTEL_EXPORTER_OTLP_HEADERS",
        place="> POST /v1/traces HTTP/1.1\n> Host: otlp.example.com\n> Authorization: Basic {secret}\n> Accept: */*\n",
    ),
    Form(
        "package index with a password",
        "https://ci:«{alnum:20}»@nexus.example.com/repository/pypi/simple",
        "PIP_EXTRA_INDEX_URL",
        place="$ pip install --index-url {value} shop\n",
    ),
    Form(
        "Auth0 client secret",
        "{url:64}",
        "AUTH0_CLIENT_SECRET",
        has_shape=False,
        place='{{"client_id":"{alnum:32}","client_secret":"{value}","grant_type":"client_credentials"}}\n',
    ),
    Form(
        "Okta token",
        "00{url:40}",
        "OKTA_CLIENT_TOKEN",
        has_shape=False,
        place="curl -H 'Authorization: SSWS {value}' https://shop.okta.com/api/v1/users\n",
    ),
]
"""Of other issuers or products than those above. Written without knowledge of the rules, and kept before they were scored."""

FRESH_HARMLESS = [
    Form("commit", "{hex:40}", "GIT_COMMIT", place="HEAD is now at {value} Fix rounding\n"),
    Form("image digest", "sha256:{hex:64}", "IMAGE_DIGEST", place="Digest: {value}\nStatus: Downloaded newer image\n"),
    Form("request id", "{uuid:4}", "REQUEST_ID", place="< HTTP/1.1 200 OK\n< X-Request-Id: {value}\n"),
    Form("picture", "data:image/png;base64,iVBORw0KGgo{b64:300}", "LOGO_URI", place='<img alt="logo" src="{value}">\n'),
    Form("SSH public key", "ssh-rsa AAAAB3NzaC1yc2E{b64:348} ci@example.com", "SSH_PUBLIC_KEY", place="$ ssh-add -L\n{value}\n"),
    Form("publishable key", "pk_live_{alnum:24}", "STRIPE_PUBLISHABLE_KEY", place="const stripe = Stripe('{value}');\n"),
    Form("Sentry address", "https://{hex:32}@o{digit:6}.ingest.sentry.io/{digit:7}", "SENTRY_DSN", place="init(dsn='{value}')\n"),
    Form("site key", "6L{url:38}", "RECAPTCHA_SITE_KEY", place='<div class="g-recaptcha" data-sitekey="{value}"></div>\n'),
    Form(
        "OAuth client id",
        "{digit:12}-{lower:32}.apps.googleusercontent.com",
        "GOOGLE_CLIENT_ID",
        place='{{"web":{{"client_id":"{value}","auth_uri":"https://accounts.google.com/o/oauth2/auth"}}}}\n',
    ),
    Form(
        "name of a secret",
        "arn:aws:secretsmanager:eu-west-1:{digit:12}:secret:shop/db-{alnum:6}",
        "DB_SECRET_ARN",
        place='"secrets": [{{"name": "DB_PASSWORD", "valueFrom": "{value}"}}]\n',
    ),
    Form("expression", "${{ secrets.API_TOKEN }}", "API_TOKEN", place="    with:\n      token: {value}\n"),
    Form("placeholder", "your-api-key-here", "OPENAI_API_KEY", place="client = OpenAI(api_key='{value}')\n"),
    Form("file with a password", "/run/secrets/db_password", "DB_PASSWORD_FILE", place="$ ls -l {value}\n"),
    Form(
        "number of tokens", "1{digit:4}", "MAX_TOKENS", place='"usage": {{"prompt_tokens": {value}, "completion_tokens": 12}}\n'
    ),
    Form("reference", "op://ci/github/token", "GITHUB_TOKEN", place="$ op run --env-file=.env -- op read {value}\n"),
    Form("integrity", "sha512-{b64:86}==", "PACKAGE_INTEGRITY", place='"node_modules/ms": {{"integrity": "{value}"}}\n'),
    Form("trace", "00-{hex:32}-{hex:16}-01", "TRACEPARENT", place="> GET / HTTP/1.1\n> traceparent: {value}\n"),
    Form(
        "address without a password", "postgresql://app@db.example.internal:5432/shop", "DATABASE_URL", place="$ psql {value}\n"
    ),
    Form("fingerprint", "SHA256:{b64:43}", "HOST_KEY_FINGERPRINT", place="ED25519 key fingerprint is {value}.\n"),
    Form("certificate", "{certificate:0}", "TLS_CERT", place="$ openssl x509 -in tls.crt\n{value}\n"),
]
"""What looks like one of them and is none."""

SURROUNDINGS = {
    "env": "HOSTNAME=web-7c9\nPATH=/usr/local/bin:/usr/bin\n{name}={value}\nLANG=C.UTF-8\n",
    "export": '#!/bin/sh\nexport {name}="{value}"\nexec ./serve --port 8080\n',
    "json": '{{"Config": {{"Image": "web:1.4", "{name}": {json}, "Tty": false}}}}\n',
    "yaml": "env:\n  - name: LOG_LEVEL\n    value: info\n  {name}: {value}\nports: [8080]\n",
    "log": "2026-05-04T10:11:12Z INFO start listening on :8080\n2026-05-04T10:11:13Z WARN config {name}={value} overrides file\n",
}
"""Around any form."""

SHAPED_SURROUNDINGS = {
    "header": "> GET /v1/me HTTP/1.1\n> Host: api.example.com\n> Authorization: Bearer {value}\n> Accept: */*\n",
    "argument": "+ curl -fsS -H 'Accept: application/json' --token {value} https://api.example.com/v1/me\n",
    "trace": 'requests.exceptions.HTTPError: 401 for url: https://api.example.com/v1?key={value}\n  File "app.py", line 12\n',
    "prose": "I rotated it this morning, the new one is {value} (expires Friday).\n",
}
"""Only around a form that shows by itself what it is, and that is one line."""

FRESH_SURROUNDINGS = {
    "a container's environment": '"Config": {{"Env": ["PATH=/usr/bin", "{name}={escaped}", "TZ=UTC"], "Cmd": ["serve"]}}\n',
    "environment": "SHLVL=1\n{name}={value}\nPWD=/srv/app\n",
    "manifest": "containers:\n- image: api:2.3\n  env:\n  - name: {name}\n    value: {json}\n  ports:\n  - containerPort: 8080\n",
    "log": "2026-06-11 08:14:02,331 DEBUG app.settings {{'DEBUG': False, '{name}': {value!r}, 'REGION': 'eu-west-1'}}\n",
    "JSON": '{{"level":"info","msg":"started","config":{{"port":8080,"{lower}":{json}}}}}\n',
    "shell history": "  501  cd /srv/app\n  502  export {name}='{value}'\n  503  make deploy\n",
    "command": "$ docker run --rm -e {name}='{value}' -p 8080:8080 api:2.3\n",
}
FRESH_SHAPED_SURROUNDINGS = {
    "message": "2026-06-11T08:14:02Z WARN worker failed for {value}, giving up after 3 tries\n",
    "script": "$ ./deploy.sh production '{value}'\ndone in 12s\n",
}

HARMLESS = [
    "commit {hex:40}\nAuthor: A <a@example.com>\n",
    "sha256:{hex:64}  layer.tar\n",
    '"integrity": "sha512-{b64:86}==",\n',
    "request_id={hex:8}-{hex:4}-4{hex:3}-a{hex:3}-{hex:12} status=200\n",
    "customer cus_{alnum:14} paid invoice in_{alnum:24} by charge ch_{alnum:24}\n",
    "arn:aws:iam::{digit:12}:role/deploy (AROA{base32:17})\n",
    'ETag: "{hex:32}"\n',
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5{b64:48} me@host\n",
    "DB_PASSWORD=\nAPI_KEY=<your key here>\nTOKEN=${TOKEN}\n",
    'password = os.environ["DB_PASSWORD"]\ntoken = request.headers.get("Authorization")\n',
    "<img src='data:image/png;base64,{b64:400}'>\n",
    "the tokens per second were 812, the key was KeyError: 'user_id'\n",
    "go.sum h1:{b64:43}=\n",
    "node_id: MDQ6VXNlcjE{digit:4}, U{upper:10} joined #C{upper:10}\n",
    "https://example.com/reset?state={word:6}&page=2&sort=asc\n",
    "-----BEGIN CERTIFICATE-----\n{b64:64}\n{b64:64}\n-----END CERTIFICATE-----\n",
    "-----BEGIN PUBLIC KEY-----\n{b64:64}\n-----END PUBLIC KEY-----\n",
]


class Case(NamedTuple):
    """`secret` is None if there is nothing to find."""

    name: str
    text: str
    secret: str | None


def fill(template: str, source: random.Random) -> str:
    """The template with random characters."""

    def choose(match: re.Match[str]) -> str:
        kind, count = match[1], int(match[2])
        if kind in _MADE:
            return _MADE[kind](source, count)
        return "".join(source.choice(_ALPHABETS[kind]) for _ in range(count))

    return re.sub(r"\{(\w+):(\d+)\}", choose, template)


def _jwt(source: random.Random, _: int) -> str:
    parts = (b'{"alg":"HS256","typ":"JWT"}', b'{"sub":"%d","name":"A"}' % source.randrange(10**9), source.randbytes(32))
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


def _pem(source: random.Random, _: int) -> str:
    body = base64.encodebytes(source.randbytes(600)).decode()
    label = source.choice(["RSA PRIVATE KEY", "PRIVATE KEY", "OPENSSH PRIVATE KEY", "EC PRIVATE KEY"])
    return f"-----BEGIN {label}-----\n{body}-----END {label}-----"


def _account(source: random.Random, _: int) -> str:
    claims = {"iss": "kubernetes/serviceaccount", "sub": "system:serviceaccount:default:ci", "uid": _uuid(source, 4)}
    parts = (
        b'{"alg":"RS256","kid":"%s"}' % source.randbytes(16).hex().encode(),
        json.dumps(claims).encode(),
        source.randbytes(256),
    )
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


def _uuid(source: random.Random, version: int) -> str:
    return str(uuid.UUID(bytes=source.randbytes(16), version=version))


def _basic(source: random.Random, count: int) -> str:
    password = "".join(source.choice(_ALPHABETS["alnum"]) for _ in range(count))
    return base64.b64encode(f"deploy:{password}".encode()).decode()


def _encode(source: random.Random, count: int) -> str:
    return base64.b64encode(fill(f"{{password:{count}}}", source).encode()).decode()


def _armour(label: str, start: bytes, size: int, source: random.Random) -> str:
    body = base64.b64encode(start + source.randbytes(size)).decode()
    lines = "\n".join(body[at : at + 64] for at in range(0, len(body), 64))
    return f"-----BEGIN {label}-----\n{lines}\n-----END {label}-----\n"


def _pkcs8(source: random.Random, _: int) -> str:
    return _armour(
        "PRIVATE KEY", bytes.fromhex("308204be020100300d06092a864886f70d0101010500048204a8308204a40201000282010100"), 1180, source
    )


def _pem64(source: random.Random, _: int) -> str:
    key = _armour("RSA PRIVATE KEY", bytes.fromhex("308204a40201000282010100"), 1180, source)
    return base64.b64encode(key.encode()).decode()


def _pgp(source: random.Random, _: int) -> str:
    return _armour("PGP PRIVATE KEY BLOCK", bytes.fromhex("9503"), 900, source).replace("-----\n", "-----\n\n", 1)


def _certificate(source: random.Random, _: int) -> str:
    return _armour("CERTIFICATE", bytes.fromhex("3082036b30820253a00302010202"), 860, source)


_MADE: dict[str, Callable[[random.Random, int], str]] = {
    "jwt": _jwt,
    "pem": _pem,
    "account": _account,
    "uuid": _uuid,
    "basic": _basic,
    "encoded": _encode,
    "pkcs8": _pkcs8,
    "pem64": _pem64,
    "pgp": _pgp,
    "certificate": _certificate,
}


def secret_in(form: Form, value: str) -> str:
    """What of the value must not be shown: of a URI only its password."""
    found = re.search(r"://\w*:(\w+)@", value) if "URI" in form.issuer else None
    return found[1] if found else value


def make_cases(seed: int, forms: Sequence[Form] = FORMS) -> list[Case]:
    """Each form in each surrounding, and as many harmless texts."""
    source, cases = random.Random(seed), list[Case]()  # noqa: S311
    for form in forms:
        shaped = form.has_shape and "{pem" not in form.template
        for name, surrounding in {**SURROUNDINGS, **(SHAPED_SURROUNDINGS if shaped else {})}.items():
            value = fill(form.template, source)
            quoted = '"' + value.replace("\n", "\\n") + '"'
            text = surrounding.format(name=form.variable, value=value, json=quoted)
            secret = secret_in(form, value)
            secret = secret.replace("\n", "\\n") if name == "json" else secret
            cases.append(Case(f"{form.issuer} in {name}", text, secret))
    while len(cases) % 1000:
        template = source.choice(HARMLESS)
        cases.append(Case("harmless", fill(template, source), None))
    return cases


def make_fresh_cases(seed: int) -> list[Case]:
    """The group `fresh`: each of its forms, and each that is none, in each surrounding and in its own place."""
    source, cases = random.Random(seed), list[Case]()  # noqa: S311
    for form in (*FRESH_FORMS, *FRESH_HARMLESS):
        several = form.has_shape and len(fill(form.template, random.Random(seed)).splitlines()) == 1  # noqa: S311
        surroundings = {**FRESH_SURROUNDINGS, **(FRESH_SHAPED_SURROUNDINGS if several else {}), "its place": form.place}
        for name, surrounding in surroundings.items():
            marked = fill(form.template, source)
            value = marked.replace("«", "").replace("»", "")
            secret = found[1] if (found := re.search("«(.+)»", marked)) else value
            quoted = json.dumps(value)
            text = fill(surrounding, source).format(
                name=form.variable, lower=form.variable.lower(), value=value, secret=secret, json=quoted, escaped=quoted[1:-1]
            )
            written = secret if secret in text else json.dumps(secret)[1:-1]
            assert written in text
            cases.append(Case(f"{form.issuer} in {name}", text, written if form in FRESH_FORMS else None))
    return cases
