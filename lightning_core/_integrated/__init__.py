"""What lightning_core_integrated_api offers, a file per theme: engines and routes, resident blocks, checkpoints, automatic
differentiation, a small transformer and its adapters. lightning_core_integrated_api names everything; nothing else imports from
here.
"""
