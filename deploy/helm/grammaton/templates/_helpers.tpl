{{- define "grammaton.labels" -}}
app.kubernetes.io/name: grammaton
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "grammaton.metadata" -}}
name: {{ .root.Release.Name }}-{{ .component }}
labels:
  {{- include "grammaton.labels" . | nindent 2 }}
  app.kubernetes.io/part-of: grammaton
  app.kubernetes.io/managed-by: {{ .root.Release.Service }}
  app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
  helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{- define "grammaton.image" -}}
image: {{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- end }}

{{- define "grammaton.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "grammaton.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* Evictions and lost nodes are not failures of the pod, and are not counted. */}}
{{- define "grammaton.evictions" -}}
rules:
  - action: Ignore
    onPodConditions:
      - type: DisruptionTarget
        status: "True"
{{- end }}

{{- define "grammaton.claim" -}}
{{ .Values.store.existingClaim | default (printf "%s-results" .Release.Name) }}
{{- end }}

{{/* Kubernetes supports gRPC health probes only without TLS. */}}
{{- define "grammaton.probe" -}}
{{- if .Values.secrets.coordinatorTls -}}
httpGet:
  path: /health
  port: metrics
  scheme: HTTPS
{{- else -}}
grpc:
  port: 7600
{{- end }}
{{- end }}
